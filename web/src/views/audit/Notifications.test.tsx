import { cleanup, render, screen, waitFor } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";

import type { NotifyTarget } from "../../api/types";
import { client } from "../../state/session";
import { newest, Notifications } from "./Notifications";

const target = (with_: Partial<NotifyTarget> = {}): NotifyTarget => ({
  name: "ops",
  kind: "slack",
  to: "hooks.example.com",
  tell: ["failed", "budget"],
  teams: [],
  owners: [],
  signed: false,
  waiting: 0,
  last: null,
  ...with_,
});

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

test("a button sends a test, and says whether it arrived", async () => {
  vi.spyOn(client, "get").mockResolvedValue({ targets: [target()], now: 0 });
  const post = vi
    .spyOn(client, "post")
    .mockResolvedValue({ target: "ops", delivered: false, error: "HTTP 503" });
  render(<Notifications />);
  await userEvent.click(await screen.findByRole("button", { name: "Send a test" }));
  expect(post).toHaveBeenCalledWith("/notify/ops/test");
  await waitFor(() => expect(screen.getByRole("status").textContent).toBe("HTTP 503"));
});

test("a service that tells nobody says so", async () => {
  vi.spyOn(client, "get").mockResolvedValue({ targets: [], now: 0 });
  render(<Notifications />);
  expect(await screen.findByText(/boa.yaml has no notify/)).toBeTruthy();
});

test("how the newest has fared is said", () => {
  const last = { number: 1, kind: "failed", at: 0, text: "", tries: 3, done_at: null };
  expect(newest(target())).toBe("none yet");
  expect(newest(target({ last: { ...last, state: "delivered", error: "" } }))).toMatch(/delivered/);
  const failing = { ...last, state: "waiting", error: "HTTP 503" };
  expect(newest(target({ waiting: 2, last: failing }))).toBe("2 waiting, tried 3×: HTTP 503");
});
