import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { ApiError } from "../../api/client";
import type { Saved as Answered } from "../../api/types";
import { client } from "../../state/session";
import { Saved } from "./Saved";

const NONE: Answered = {
  month: "",
  state: "none",
  jobs: 40,
  left_out: 0,
  widths: {},
  assumes: ["Both sides are simulated."],
  too_thin: "",
  error: "",
};
const RUN = { average_jct_s: 3600, cost_usd: 200 };
const DONE: Answered = {
  ...NONE,
  state: "done",
  result: {
    before: RUN,
    boa: RUN,
    jct_at_same_cost_s: 1800,
    cost_at_same_jct_usd: 150,
    saved_usd: 50,
    sooner_s: 1800,
    words: ["Before it cost $200.00 (simulated).", "For the same time it costs $50.00 less."],
  },
};

let told: Answered = NONE;
beforeEach(() => {
  vi.spyOn(client, "get").mockImplementation(() => Promise.resolve(told));
});
afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

it("asks only when the button is pressed, and then says that it is simulated", async () => {
  told = NONE;
  const post = vi.spyOn(client, "post").mockImplementation(() => {
    told = DONE;
    return Promise.resolve(DONE);
  });
  render(<Saved name="2026-01" isPresent={false} />);
  expect(await screen.findByText(/Nobody has asked yet\. The 40 jobs/)).toBeTruthy();
  expect(post).not.toHaveBeenCalled();
  await userEvent.click(screen.getByRole("button", { name: "Simulate it" }));
  expect(post).toHaveBeenCalledWith("/saved", { month: "2026-01" });
  expect(await screen.findByText(/\(simulated\)\. For the same time/)).toBeTruthy();
  expect(screen.getByText(/All of this is simulated/)).toBeTruthy();
  expect(screen.queryByRole("button")).toBeNull();
});

it("is held against the width and the GPU type that somebody chooses", async () => {
  told = { ...NONE, gpu_types: ["T4", "A100"] };
  const get = vi.spyOn(client, "get");
  const post = vi.spyOn(client, "post").mockResolvedValue(told);
  render(<Saved name="2026-07" isPresent={false} />);
  await userEvent.type(await screen.findByLabelText("GPUs of every job before"), "4");
  await userEvent.selectOptions(screen.getByLabelText("GPU type of jobs before"), "A100");
  await userEvent.click(await screen.findByRole("button", { name: "Simulate it" }));
  const question = { month: "2026-07", width: 4, gpu_type: "A100" };
  expect(post).toHaveBeenCalledWith("/saved", question);
  expect(get.mock.calls.map(([path]) => path)).toContain(
    "/saved?month=2026-07&width=4&gpu_type=A100",
  );
});

it("can be asked again of a month in progress", async () => {
  told = DONE;
  render(<Saved name="2026-02" isPresent />);
  expect(await screen.findByRole("button", { name: "Simulate it again" })).toBeTruthy();
});

it("says why nothing can be said, and offers nothing then", async () => {
  told = { ...NONE, too_thin: "3 jobs ended in the month: it takes 20 to say anything" };
  render(<Saved name="2026-03" isPresent />);
  expect(await screen.findByText(/Nothing can be said yet: 3 jobs ended/)).toBeTruthy();
  expect(screen.queryByRole("button")).toBeNull();
});

it("says how far it is while it runs, why it failed, and who may not ask", async () => {
  told = { ...NONE, state: "running" };
  const { unmount } = render(<Saved name="2026-04" isPresent />);
  expect(await screen.findByText(/It is being simulated/)).toBeTruthy();
  expect(screen.queryByRole("button")).toBeNull();
  unmount();
  told = { ...NONE, state: "failed", error: "no plan" };
  vi.spyOn(client, "post").mockRejectedValue(new ApiError(403, "needs the role member"));
  render(<Saved name="2026-05" isPresent />);
  expect(await screen.findByText("The simulation failed: no plan")).toBeTruthy();
  await userEvent.click(screen.getByRole("button", { name: "Simulate it again" }));
  expect((await screen.findByRole("alert")).textContent).toContain("needs the role member");
});
