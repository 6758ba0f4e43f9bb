import { cleanup, render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { client } from "../../state/session";
import { Who } from "../../state/who";
import { Cap } from "./Cap";

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

const press = (name: string) => userEvent.click(screen.getByRole("button", { name }));

it("sets a cap alone, once confirmed: the budget and its average stay", async () => {
  const put = vi.spyOn(client, "put").mockResolvedValue({});
  render(<Cap budget={14} cap={null} />);
  await userEvent.type(screen.getByLabelText("Never more than"), "30");
  await press("Set the cap");
  expect(put).not.toHaveBeenCalled();
  expect(screen.getByRole("dialog").textContent).toContain("budget of $14.00/h stays as it is");
  await press("Cap it at $30.00/h");
  expect(put).toHaveBeenCalledExactlyOnceWith("/budget", { max_spend_per_hour: 30 });
});

it.each(["admin", "member"] as const)("is changed by admins alone: %s", (role) => {
  render(
    <Who value={{ name: "alice", role, team: "" }}>
      <Cap budget={14} cap={30} />
    </Who>,
  );
  expect(screen.queryAllByRole("button")).toHaveLength(role === "admin" ? 2 : 0);
});

it("takes the cap away", async () => {
  const put = vi.spyOn(client, "put").mockResolvedValue({});
  render(<Cap budget={14} cap={30} />);
  await press("Remove the cap");
  expect(screen.getByRole("dialog").textContent).toContain("from $30.00/h to none");
  await userEvent.click(within(screen.getByRole("dialog")).getByText("Remove the cap"));
  expect(put.mock.lastCall?.[1]).toEqual({ max_spend_per_hour: null });
});

it("warns of a cap below the budget", async () => {
  render(<Cap budget={14} cap={null} />);
  await userEvent.type(screen.getByLabelText("Never more than"), "10");
  await press("Set the cap");
  expect(screen.getByRole("dialog").textContent).toContain("below the budget of $14.00/h");
});

it("asks nothing for what is no amount", async () => {
  render(<Cap budget={14} cap={null} />);
  await userEvent.type(screen.getByLabelText("Never more than"), "lots");
  expect(screen.getByRole("button", { name: "Set the cap" })).toHaveProperty("disabled", true);
  expect(screen.getByRole("alert").textContent).toContain("An amount above 0");
  expect(screen.queryByRole("dialog")).toBeNull();
});
