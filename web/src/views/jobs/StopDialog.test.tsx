import { cleanup, render, screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { ApiError } from "../../api/client";
import type { Node } from "../../api/types";
import { live } from "../../state/hooks";
import { NOTHING } from "../../state/live";
import { client } from "../../state/session";
import { Who } from "../../state/who";
import { Asked, StopCell } from "./cells";
import { job } from "./sample";
import { StopDialog } from "./StopDialog";

const T4 = new Map([[1, { gpu_type: "T4", price: 0.5 } as Node]]);

const stopped = vi.fn();

beforeEach(() => {
  stopped.mockClear();
  // jsdom has the element, not what it does.
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function () {
    this.open = false;
  };
});
afterEach(cleanup);

test("the dialog says what becomes of the job and its money, and stops it", async () => {
  const post = vi.spyOn(client, "post").mockResolvedValue({});
  const close = vi.fn();
  render(<StopDialog job={job(41)} onStopped={stopped} onClose={close} />);
  expect(screen.getByRole("dialog").textContent).toMatch(/checkpoint.*4×T4.*\$1\.50.*\$2\.25/);
  await userEvent.click(screen.getByRole("button", { name: "Stop the job" }));
  expect(post).toHaveBeenCalledExactlyOnceWith("/jobs/41/stop");
  expect(stopped).toHaveBeenCalledOnce();
  expect(close).toHaveBeenCalledOnce();
});

test("the cost has grown since the job was told of", () => {
  live.picture = { ...NOTHING, connection: "gone", now: 5600, heardAt: 1, nodes: T4 };
  render(<StopDialog job={job(41)} onStopped={stopped} onClose={vi.fn()} />);
  live.picture = NOTHING;
  expect(screen.getByText("$3.50")).toBeTruthy();
});

test("what the service says no with is shown, and the dialog stays", async () => {
  vi.spyOn(client, "post").mockRejectedValue(new ApiError(503, "the database is in trouble"));
  const close = vi.fn();
  render(<StopDialog job={job(41)} onStopped={stopped} onClose={close} />);
  await userEvent.click(screen.getByRole("button", { name: "Stop the job" }));
  expect((await screen.findByRole("alert")).textContent).toBe("the database is in trouble");
  expect(stopped).not.toHaveBeenCalled();
  expect(close).not.toHaveBeenCalled();
});

test("nothing is stopped by cancelling", async () => {
  const post = vi.spyOn(client, "post").mockResolvedValue({});
  const close = vi.fn();
  render(<StopDialog job={job(41)} onStopped={stopped} onClose={close} />);
  await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
  expect(close).toHaveBeenCalledOnce();
  expect(post).not.toHaveBeenCalled();
});

test("the button of a row asks for the dialog without opening the row", async () => {
  const open = vi.fn();
  const stop = vi.fn();
  const row = job(41);
  render(
    // eslint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-static-element-interactions
    <div onClick={open}>
      <StopCell row={row} onStop={stop} />
    </div>,
  );
  await userEvent.click(screen.getByRole("button", { name: "Stop job 41" }));
  expect(stop).toHaveBeenCalledExactlyOnceWith(row);
  expect(open).not.toHaveBeenCalled();
});

test("a job says that it stops before the picture does", () => {
  render(
    <Asked value={new Set(["41"])}>
      <StopCell row={job(41)} onStop={vi.fn()} />
    </Asked>,
  );
  expect(screen.getByText("stopping…")).toBeTruthy();
});

test("a job that was asked to stop says so, and an ended one has no button", () => {
  const { rerender } = render(
    <StopCell row={job(41, { stop_requested: true })} onStop={vi.fn()} />,
  );
  expect(screen.getByText("stopping…")).toBeTruthy();
  rerender(<StopCell row={job(41, { state: "stopped" })} onStop={vi.fn()} />);
  expect(screen.queryByRole("button")).toBeNull();
  expect(screen.queryByText("stopping…")).toBeNull();
});

test("of a job that has ended meanwhile there is nothing to stop, and the dialog says so", () => {
  const over = job(41, { state: "succeeded", ended_at: 2100, cost_usd: 3 });
  live.picture = { ...NOTHING, connection: "live", ended: new Map([["41", over]]) };
  render(<StopDialog job={job(41)} onStopped={stopped} onClose={vi.fn()} />);
  live.picture = NOTHING;
  expect(screen.getByRole("dialog").textContent).toMatch(
    /has ended.*has succeeded.*\$3\.00 in all/,
  );
  expect(screen.getAllByRole("button").map((each) => each.textContent)).toEqual(["Close"]);
});

test.each([
  ["alice", "admin", "bob", true],
  ["alice", "member", "alice", true],
  ["alice", "member", "bob", false],
  ["alice", "viewer", "alice", false],
] as const)("%s, %s, is offered to stop a job of %s: %s", (name, role, owner, may) => {
  render(
    <Who value={{ name, role, team: "" }}>
      <StopCell row={job(41, { owner })} onStop={vi.fn()} />
    </Who>,
  );
  expect(screen.queryAllByRole("button")).toHaveLength(may ? 1 : 0);
});
