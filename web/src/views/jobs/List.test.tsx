import { cleanup, render, screen, waitFor, within } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { act } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { live } from "../../state/hooks";
import { NOTHING, type SeenJob } from "../../state/live";
import { client } from "../../state/session";
import { node } from "../cluster/sample";
import { JobList } from "./List";
import { job, mapped, sweepRow } from "./sample";

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

test("whose a job is has a column where several people submit", () => {
  vi.stubGlobal("innerWidth", 1440);
  picture(job(1), job(2));
  const { unmount } = render(<JobList />);
  expect(screen.queryByRole("columnheader", { name: "Owner" })).toBeNull();
  unmount();
  picture(job(1, { owner: "mia" }), job(2, { owner: "tom" }));
  render(<JobList />);
  expect(screen.getByRole("columnheader", { name: "Owner" })).toBeTruthy();
  expect(screen.getByText("tom")).toBeTruthy();
});

test("costs are sorted by what is shown: what was told long ago has grown since", async () => {
  const costs = { now: 9200, nodes: new Map([[1, node(1, { price: 1 })]]) };
  picture(
    job(1, { cost_usd: 1, told_at: 2000 }),
    job(2, { cost_usd: 3, told_at: 9200 }),
    job(3, { cost_usd: 4, told_at: 9200 }),
  );
  live.picture = { ...live.picture, heardAt: performance.now(), ...costs };
  window.location.hash = "#/jobs?sort=-cost";
  render(<JobList />);
  await screen.findByText("$9.00");
  expect(names()).toEqual(["train-1", "train-3", "train-2"]);
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
  await userEvent.click(screen.getByRole("checkbox", { name: "Show finished" }));
  await waitFor(() => expect(names()).toEqual(["train-3", "train-2"]));
  const row = screen.getAllByRole("row")[1];
  expect(row && within(row).getByText("running")).toBeTruthy();
});

test("a job that is far back is found by itself, though no row can be scrolled to", async () => {
  window.location.hash = "#/jobs?search=oldie&ended=1";
  picture(job(12));
  const get = vi.spyOn(client, "get").mockImplementation((path: string) => {
    const before = Number(new URLSearchParams(path.split("?")[1]).get("before") ?? 9000);
    const found = before === 5000 ? [job(3, { name: "oldie", state: "failed" })] : [];
    const next = before === 5000 ? null : before - 2000;
    return Promise.resolve({ jobs: found, now: 1, before: next } as never);
  });
  render(<JobList />);
  expect(await screen.findByRole("link", { name: "oldie" })).toBeTruthy();
  expect(get).toHaveBeenCalledTimes(3);
});

test("where no job fits at all, it says so in the end", async () => {
  window.location.hash = "#/jobs?search=never&ended=1";
  picture(job(12));
  vi.spyOn(client, "get").mockImplementation((path: string) => {
    const before = path.includes("before=") ? null : 7000;
    return Promise.resolve({ jobs: [], now: 1, before } as never);
  });
  render(<JobList />);
  expect(await screen.findByText(/Loading older jobs/)).toBeTruthy();
  expect(await screen.findByText("No job fits")).toBeTruthy();
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

test("a sweep is one line with its progress, its best value and its cost, and opens", async () => {
  vi.stubGlobal("innerWidth", 1440);
  picture(
    job(3, { sweep: "s1", done: 0.5 }),
    job(4, { sweep: "s1", done: 0.9, name: "lr search lr=2" }),
    job(5),
  );
  vi.spyOn(client, "get").mockResolvedValue({ sweeps: [sweepRow("s1")], now: 2000 });
  render(<JobList />);
  expect(await screen.findByText("best loss 0.125")).toBeTruthy();
  expect(screen.getByTitle(/^resnet18 best loss 0.125 .lr=1e-4 seed=1/)).toBeTruthy();
  expect(names()).toEqual(["train-5", "lr search"]);
  expect(screen.getByTitle(/27 jobs: 2 running, 25 stopped · best loss/)).toBeTruthy();
  expect(screen.getByText("$7.50")).toBeTruthy();
  const bar = screen.getByRole("progressbar", { name: "Progress of sweep s1" });
  expect(bar.getAttribute("aria-valuenow")).toBe("98");
  expect(screen.queryByRole("button", { name: "Stop job s1" })).toBeNull();
  await userEvent.click(screen.getByText("2 of 27 active"));
  expect(names()).toEqual(["train-5", "lr search", "lr=2", "train-3"]);
  expect(window.location.hash).toBe("#/jobs");
  await userEvent.click(screen.getByRole("button", { name: "Jobs of sweep s1", expanded: true }));
  expect(names()).toEqual(["train-5", "lr search"]);
});

test("before the service has told of a sweep, its line says what is seen of it", () => {
  picture(job(3, { sweep: "s2", cost_usd: 1 }), job(4, { sweep: "s2", cost_usd: 2 }));
  vi.spyOn(client, "get").mockReturnValue(new Promise(() => undefined));
  render(<JobList />);
  expect(names()).toEqual(["resnet18"]);
  expect(screen.getByText("2 of 2 active")).toBeTruthy();
  expect(screen.getByText("$3.00")).toBeTruthy();
});
