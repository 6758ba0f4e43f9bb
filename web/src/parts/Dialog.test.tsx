import { cleanup, render, screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { ApiError } from "../api/client";
import { Confirm } from "./Dialog";

beforeEach(() => {
  // jsdom has the element, not what it does.
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function () {
    this.open = false;
  };
});
afterEach(cleanup);

function asked(onConfirm: () => Promise<void>) {
  const close = vi.fn();
  render(
    <Confirm title="Spend more?" action="Apply" onConfirm={onConfirm} onClose={close}>
      <p>Jobs rescale.</p>
    </Confirm>,
  );
  return close;
}

test("the service's no is shown, and the dialog stays open for another try", async () => {
  const confirm = vi.fn<() => Promise<void>>();
  confirm.mockRejectedValueOnce(new ApiError(422, "the budget is below the hard cap"));
  confirm.mockResolvedValueOnce();
  const close = asked(confirm);
  await userEvent.click(screen.getByRole("button", { name: "Apply" }));
  const alert = await screen.findByRole("alert");
  expect(alert.textContent).toBe("the budget is below the hard cap");
  expect(close).not.toHaveBeenCalled();
  await userEvent.click(screen.getByRole("button", { name: "Apply" }));
  expect(close).toHaveBeenCalledOnce();
});

test("it closes when the service has said yes, and cannot be pressed twice before", async () => {
  let yes: () => void = () => expect.fail("nobody asked");
  const confirm = vi.fn(() => new Promise<void>((resolve) => (yes = resolve)));
  const close = asked(confirm);
  await userEvent.click(screen.getByRole("button", { name: "Apply" }));
  await userEvent.click(screen.getByRole("button", { name: "Working…" }));
  expect(confirm).toHaveBeenCalledOnce();
  expect(close).not.toHaveBeenCalled();
  yes();
  await vi.waitFor(() => expect(close).toHaveBeenCalledOnce());
});

test("cancelling does nothing", async () => {
  const confirm = vi.fn(() => Promise.resolve());
  const close = asked(confirm);
  await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
  expect(confirm).not.toHaveBeenCalled();
  expect(close).toHaveBeenCalledOnce();
});
