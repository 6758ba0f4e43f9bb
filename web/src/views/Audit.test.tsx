import { cleanup, render, screen, waitFor } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";

import { ApiError } from "../api/client";
import type { AuditLine } from "../api/types";
import { client } from "../state/session";
import { Audit } from "./Audit";
import { changed } from "./audit/words";

const line = (number: number, with_: Partial<AuditLine> = {}): AuditLine => ({
  number,
  at: 1_790_000_000 + number,
  who: "alice",
  role: "member",
  address: "10.0.0.7",
  what: "stop",
  subject: "17",
  before: null,
  after: null,
  result: "done",
  count: 1,
  ...with_,
});
const texts = () => screen.getAllByRole("listitem").map((each) => each.textContent);

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

test("who changed what is told with what it was before, and refusals are marked", async () => {
  vi.spyOn(client, "get").mockResolvedValue({
    lines: [
      line(3, {
        what: "refused",
        who: "",
        role: "",
        subject: "GET /api/v1/jobs",
        result: "401",
        count: 1200,
      }),
      line(2, {
        what: "budget",
        subject: "",
        before: { budget_per_hour: 4 },
        after: { budget_per_hour: 5 },
      }),
      line(1),
    ],
    before: null,
  });
  render(<Audit />);
  await waitFor(() => expect(texts()).toHaveLength(3));
  const [refused, budget, stop] = texts();
  expect(refused).toContain("refused ×1,200");
  expect(refused).toContain("nobody known");
  expect(refused).toContain("— 401");
  expect(budget).toContain("budget per hour $4.00 → $5.00");
  expect(stop).toContain("alice (member) 17");
  expect(stop).toContain("from 10.0.0.7");
  expect(screen.queryByRole("button", { name: "Show older ones" })).toBeNull();
});

test("older lines are loaded when asked for, each once", async () => {
  const get = vi
    .spyOn(client, "get")
    .mockImplementation((path) =>
      Promise.resolve(
        path.includes("before=")
          ? { lines: [line(2), line(1)], before: null }
          : { lines: [line(4), line(3), line(2)], before: 2 },
      ),
    );
  render(<Audit />);
  await userEvent.click(await screen.findByRole("button", { name: "Show older ones" }));
  await waitFor(() => expect(texts()).toHaveLength(4));
  expect(get).toHaveBeenLastCalledWith("/audit?limit=200&before=2");
});

test("who may not read it is told why", async () => {
  const why = "alice has the role member: reading the audit log needs the role admin";
  vi.spyOn(client, "get").mockRejectedValue(new ApiError(403, why));
  render(<Audit />);
  expect(await screen.findByText(why)).toBeTruthy();
});

test("only what is different is told", () => {
  expect(changed({ a: 1, b: "x" }, { a: 1, b: "y", c: null })).toBe("b x → y");
  expect(changed(null, { role: "viewer" })).toBe("role viewer");
  expect(changed({ cap: 3 }, { cap: null })).toBe("cap 3 → none");
  expect(changed(null, { role: "viewer", team: "" })).toBe("role viewer");
  expect(changed(null, { jobs: 2, classes: ["a", "b"] })).toBe("jobs 2, classes a b");
});

test("times in a change are told as times", () => {
  const said = changed({ revoked_at: null }, { revoked_at: 1_800_000_000 });
  expect(said).toMatch(/^revoked at .*Jan.*\d\d:\d\d/);
});
