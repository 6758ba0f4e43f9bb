import { cleanup, render, screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { SweepDetails } from "../../api/types";
import { client } from "../../state/session";
import { Jobs } from "../Jobs";
import { member, sweepRow } from "./sample";
import { bestFirst } from "./Sweep";

const RULE = { metric: "acc", better: "max", factor: 3, first: 1, rungs: [1, 3] } as const;

function details(with_: Partial<SweepDetails> = {}): SweepDetails {
  const members = [
    member("1", { value: 0.2 }),
    member("2"),
    member("3", { value: 0.9, state: "stopped", reason: "others do better" }),
  ];
  return { ...sweepRow("s7"), halving: null, members, ...with_ };
}

beforeEach(() => {
  // jsdom has the element, not what it does.
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function () {
    this.open = false;
  };
});
afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

test("the best job comes first, whichever way is better, and those without a value last", () => {
  const order = (sweep: SweepDetails) => bestFirst(sweep).map((one) => one.job);
  expect(order(details())).toEqual(["1", "3", "2"]);
  expect(order(details({ halving: { ...RULE, rungs: [1, 3] } }))).toEqual(["3", "1", "2"]);
});

test("a sweep has a page that says its rule and links to every job", async () => {
  const sweep = details({ halving: { ...RULE, rungs: [1, 3] } });
  vi.spyOn(client, "get").mockResolvedValue({ sweep });
  render(<Jobs rest={["s7"]} />);
  expect(await screen.findByRole("heading", { name: "lr search" })).toBeTruthy();
  expect(screen.getByText(/One of 3 goes on after 1, 3 epochs, by acc/)).toBeTruthy();
  expect(screen.getByRole("link", { name: "3" }).getAttribute("href")).toBe("#/jobs/3");
});

test("a sweep is stopped whole, once that is confirmed", async () => {
  vi.spyOn(client, "get").mockResolvedValue({ sweep: { ...details(), id: "s8" } });
  const post = vi.spyOn(client, "post").mockResolvedValue({});
  render(<Jobs rest={["s8"]} />);
  await userEvent.click(await screen.findByRole("button", { name: "Stop" }));
  expect(post).not.toHaveBeenCalled();
  await userEvent.click(screen.getByRole("button", { name: "Stop all its jobs" }));
  expect(post).toHaveBeenCalledWith("/sweeps/s8/stop");
});
