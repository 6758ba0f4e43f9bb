import { cleanup, render, screen, waitFor, within } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { act } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { live } from "../../state/hooks";
import { NOTHING, type SeenJob } from "../../state/live";
import { client } from "../../state/session";
import { JobList } from "./List";
import { job, mapped } from "./sample";

function picture(...jobs: SeenJob[]) {
  live.picture = { ...NOTHING, connection: "live", complete: true, jobs: mapped(...jobs) };
}

const names = () => screen.getAllByRole("link").map((link) => link.textContent);

beforeEach(() => {
  window.location.hash = "#/jobs";
});
afterEach(() => {
  cleanup();
  live.picture = NOTHING;
});

test("without a job it says how to submit one", () => {
  picture();
  render(<JobList />);
  expect(screen.getByText("boa submit job.yaml")).toBeTruthy();
});

test("newest jobs come first, and another column sorts by itself", async () => {
  picture(job(9, { cost_usd: 1 }), job(10, { cost_usd: 3 }), job(11, { cost_usd: 2 }));
  render(<JobList />);
  expect(names()).toEqual(["train-11", "train-10", "train-9"]);
  await userEvent.click(screen.getByRole("button", { name: "Cost so far" }));
  expect(names()).toEqual(["train-10", "train-11", "train-9"]);
  expect(window.location.hash).toBe("#/jobs?sort=-cost");
});

test("a state that is pressed filters, and the address keeps it", async () => {
  picture(job(1), job(2, { state: "waiting" }));
  render(<JobList />);
  await userEvent.click(screen.getByRole("button", { name: /waiting\s*1/ }));
  expect(names()).toEqual(["train-2"]);
  expect(window.location.hash).toBe("#/jobs?state=waiting");
});

test("a link with filters shows what they let through", () => {
  window.location.hash = "#/jobs?class=bert&search=tr";
  picture(job(1), job(2, { class: "bert" }), job(3, { class: "bert", name: "other" }));
  render(<JobList />);
  expect(names()).toEqual(["train-2"]);
});

test("ended jobs come from the service, without those that the picture has", async () => {
  picture(job(3));
  const get = vi.spyOn(client, "get").mockResolvedValue({
    jobs: [job(3, { state: "stopped" }), job(2, { state: "failed", ended_at: 1900 })],
    now: 2000,
    before: null,
  });
  render(<JobList />);
  expect(get).not.toHaveBeenCalled();
  await userEvent.click(screen.getByRole("checkbox", { name: "Ended too" }));
  await waitFor(() => expect(names()).toEqual(["train-3", "train-2"]));
  const row = screen.getAllByRole("row")[1];
  expect(row && within(row).getByText("running")).toBeTruthy();
});

test("arrows go from row to row, and Enter opens one", async () => {
  picture(job(1), job(2));
  render(<JobList />);
  const [, first, second] = screen.getAllByRole("row");
  act(() => first?.focus());
  await userEvent.keyboard("{ArrowDown}");
  expect(document.activeElement).toBe(second);
  await userEvent.keyboard("{ArrowUp}{ArrowDown}{Enter}");
  expect(window.location.hash).toBe("#/jobs/1");
});
