import { cleanup, render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { ApiError } from "../../api/client";
import type { PlanClass, Preview } from "../../api/types";
import { client } from "../../state/session";
import { Who } from "../../state/who";
import { Apply } from "./Apply";

function plan(width: number): PlanClass {
  return {
    name: "cnn",
    average_jct_s: 60,
    spend_per_hour: 1,
    cost_per_job: 1,
    rescalings: 1,
    cheapest_jct_s: 90,
    cheapest_cost_per_job: 0.5,
    variants: [{ share: 1, gpu_type: "T4", widths: [width] }],
  };
}

const CHANGE = { name: "cnn", arrivals_per_hour: 1, active_jobs: 3, changed: true };
const PREVIEW: Preview = {
  plan: 7,
  gain: 1,
  planned_per_hour: 10,
  budget_per_hour: 42,
  average_jct_s: 600,
  p95_jct_s: null,
  spend_per_hour: 42,
  too_small_per_hour: null,
  left_over_per_hour: 0,
  shadow_price_s: 1,
  before: { budget_per_hour: 30, average_jct_s: 1200 },
  before_p95_jct_s: null,
  unchanged: { budget_per_hour: 30, average_jct_s: 1200 },
  unchanged_p95_jct_s: null,
  classes: [{ ...CHANGE, before: plan(2), unchanged: plan(2), differs: true, after: plan(4) }],
  cluster: {},
  solve_time_s: 0.01,
  now: 0,
};

const NO_CALENDAR = { period: null, now: 30 };

function shown(part: Partial<Parameters<typeof Apply>[0]> = {}) {
  const onApplied = vi.fn();
  render(
    <Apply
      tried={42}
      budget={30}
      {...NO_CALENDAR}
      billed=""
      cap={null}
      preview={PREVIEW}
      onApplied={onApplied}
      reset={vi.fn()}
      {...part}
    />,
  );
  return onApplied;
}

beforeEach(() => {
  // jsdom knows dialogs, but cannot open them.
  HTMLDialogElement.prototype.showModal = function show() {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function close() {
    this.open = false;
  };
});
afterEach(cleanup);

async function ask(): Promise<HTMLElement> {
  await userEvent.click(screen.getByRole("button", { name: "Set the budget to $42.00/h" }));
  return screen.getByRole("dialog");
}

it("says what will happen before anything does", async () => {
  const put = vi.spyOn(client, "put");
  shown();
  const dialog = await ask();
  expect(dialog.textContent).toContain("from $30.00/h to $42.00/h");
  expect(dialog.textContent).toContain("Jobs are expected to take 10 min on average");
  expect(dialog.textContent).toContain("1 class gets other GPUs (cnn); 3 active jobs may be");
  expect(dialog.textContent).toContain("counts from now");
  expect(put).not.toHaveBeenCalled();
});

it("says of a calendar that the amount is the average of its week, and what its period gets", async () => {
  shown({ budget: 40, period: "day", now: 20 });
  const dialog = await ask();
  expect(dialog.textContent).toContain("from $40.00/h to $42.00/h on average over a week (+5.0 %)");
  expect(dialog.textContent).toContain("day, which holds now, goes from $20.00/h to $21.00/h");
  expect(dialog.textContent).toContain("at today’s budget");
});

it("sets the budget once it is confirmed", async () => {
  const put = vi.spyOn(client, "put").mockResolvedValue({});
  const onApplied = shown();
  await ask();
  await userEvent.click(screen.getByRole("button", { name: "Set it to $42.00/h" }));
  expect(put).toHaveBeenCalledExactlyOnceWith("/budget", { budget_per_hour: 42 });
  await waitFor(() => expect(onApplied).toHaveBeenCalledOnce());
});

it.each([
  [0.004_567_8, 0.00457, "$0.00457/h"],
  [1234.567, 1234.57, "$1,234.57/h"],
])("sends of %d exactly what it shows", async (tried, sent, text) => {
  const put = vi.spyOn(client, "put").mockResolvedValue({});
  shown({ tried });
  await userEvent.click(screen.getByRole("button", { name: `Set the budget to ${text}` }));
  await userEvent.click(screen.getByRole("button", { name: `Set it to ${text}` }));
  expect(put).toHaveBeenCalledExactlyOnceWith("/budget", { budget_per_hour: sent });
});

it("sets nothing if it is cancelled", async () => {
  const put = vi.spyOn(client, "put");
  shown();
  await ask();
  await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
  expect(screen.queryByRole("dialog")).toBeNull();
  expect(put).not.toHaveBeenCalled();
});

it("stays open with the service's words if it says no", async () => {
  vi.spyOn(client, "put").mockRejectedValue(new ApiError(503, "the service is shutting down"));
  const onApplied = shown();
  await ask();
  await userEvent.click(screen.getByRole("button", { name: "Set it to $42.00/h" }));
  expect((await screen.findByRole("alert")).textContent).toBe("the service is shutting down");
  expect(onApplied).not.toHaveBeenCalled();
});

it("warns of a cap below the budget, and of a budget that is too small", async () => {
  shown({ cap: 35, preview: { ...PREVIEW, too_small_per_hour: 50 } });
  const dialog = await ask();
  expect(dialog.textContent).toContain("it is below this budget");
  expect(dialog.textContent).toContain("is below what this workload needs ($50.00/h)");
});

it("cannot be pressed before the plan for the budget is known, nor for the same budget", () => {
  shown({ preview: null });
  expect(screen.getByRole<HTMLButtonElement>("button", { name: /Set the budget/ }).disabled).toBe(
    true,
  );
  cleanup();
  shown({ tried: 30 });
  expect(screen.getByRole<HTMLButtonElement>("button", { name: /The budget is/ }).disabled).toBe(
    true,
  );
});

/** All that is given but the budgets. */
function rest() {
  return {
    ...NO_CALENDAR,
    billed: "",
    cap: null,
    preview: PREVIEW,
    onApplied: vi.fn(),
    reset: vi.fn(),
  };
}

it("keeps what was asked as it was, whatever is tried meanwhile", async () => {
  const put = vi.spyOn(client, "put").mockResolvedValue({});
  const props = rest();
  const { rerender } = render(<Apply tried={42} budget={30} {...props} />);
  await userEvent.click(screen.getByRole("button", { name: "Set the budget to $42.00/h" }));
  rerender(<Apply tried={50} budget={30} {...props} preview={null} />);
  expect(screen.getByRole("dialog").textContent).toContain("from $30.00/h to $42.00/h");
  await userEvent.click(screen.getByRole("button", { name: "Set it to $42.00/h" }));
  expect(put).toHaveBeenCalledExactlyOnceWith("/budget", { budget_per_hour: 42 });
  await waitFor(() => expect(props.onApplied).toHaveBeenCalledExactlyOnceWith(42));
});

it("asks again where somebody else has changed the budget meanwhile", async () => {
  const props = rest();
  const { rerender } = render(<Apply tried={42} budget={30} {...props} />);
  await userEvent.click(screen.getByRole("button", { name: "Set the budget to $42.00/h" }));
  rerender(<Apply tried={42} budget={35} {...props} />);
  const dialog = screen.getByRole("dialog");
  expect(dialog.textContent).toContain("from $30.00/h to $35.00/h");
  expect(
    within(dialog)
      .getAllByRole("button")
      .map((each) => each.textContent),
  ).toEqual(["Close"]);
});

it("is for admins: others may try a budget, and are told who sets it", () => {
  const given = { tried: 42, budget: 30, ...rest() };
  render(
    <Who value={{ name: "alice", role: "member", team: "" }}>
      <Apply {...given} />
    </Who>,
  );
  const button = screen.getByRole<HTMLButtonElement>("button", { name: /Set the budget/ });
  expect(button.disabled).toBe(true);
  expect(screen.getByText("Admins set it.")).toBeTruthy();
});
