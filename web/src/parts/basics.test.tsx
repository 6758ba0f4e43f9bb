import { cleanup, render, screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";

import { Boundary } from "./Boundary";
import { Progress, Shown } from "./basics";

afterEach(cleanup);

const NOTHING_YET = { data: null, error: null, loading: true, again: vi.fn() };

test("an answer on its way says what is loading", () => {
  render(
    <Shown answer={NOTHING_YET} what="the plan">
      {() => "there"}
    </Shown>,
  );
  expect(screen.getByRole("status").textContent).toContain("Loading the plan");
});

test("a refused answer says why, and can be asked for again", async () => {
  const again = vi.fn();
  const answer = { ...NOTHING_YET, error: new Error("no such plan"), again };
  render(
    <Shown answer={answer} what="the plan">
      {() => "there"}
    </Shown>,
  );
  expect(screen.getByRole("alert").textContent).toContain("no such plan");
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  expect(again).toHaveBeenCalledOnce();
});

test("an answer that is there stays when the next one fails, and says that it is old", () => {
  const at = new Date(2026, 10, 15, 20, 31, 5).getTime() / 1000;
  const error = new Error("The service does not answer.");
  const answer = { ...NOTHING_YET, data: "the plan", error, at };
  render(
    <Shown answer={answer} what="the plan">
      {(data) => data}
    </Shown>,
  );
  expect(screen.getByText("the plan")).toBeTruthy();
  expect(screen.getByRole("status").textContent).toBe(
    "Could not be brought up to date: The service does not answer; as of 20:31:05",
  );
});

test("progress that nobody knows is unknown, and never more than all", () => {
  const { rerender } = render(<Progress done={null} label="job 1" />);
  expect(screen.queryByRole("progressbar")).toBeNull();
  rerender(<Progress done={1.2} label="job 1" />);
  expect(screen.getByRole("progressbar").getAttribute("aria-valuenow")).toBe("100");
});

test("a view that breaks says so and can be tried again", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  let broken = true;
  function Fragile() {
    if (broken) throw new Error("no nodes");
    return "mended";
  }
  render(
    <Boundary>
      <Fragile />
    </Boundary>,
  );
  expect(screen.getByRole("alert").textContent).toContain("This view broke: no nodes");
  broken = false;
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  expect(screen.getByText("mended")).toBeTruthy();
});
