import { cleanup, render, screen, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { Budget } from "../api/types";
import { live } from "../state/hooks";
import { NOTHING } from "../state/live";
import { client } from "../state/session";
import { job, mapped } from "./jobs/sample";
import { part } from "./teams/sample";
import { Teams } from "./Teams";

const BUDGET: Budget = {
  budget_per_hour: 40,
  max_spend_per_hour: null,
  effective_budget_per_hour: 40,
  average_spend_per_hour: 30,
  spend_now_per_hour: 32,
  since: 0,
  now: 3600,
  parts: [
    part("vision", { classes: ["resnet18"], max_per_hour: 30, lent_usd: -3 }),
    part("language", { spend_now_per_hour: 20 }),
    part("eve", { above: "language", classes: ["bert"], spend_now_per_hour: 20 }),
  ],
};

beforeEach(() => {
  vi.spyOn(client, "get").mockReturnValue(new Promise(() => undefined));
  live.picture = {
    ...NOTHING,
    connection: "live",
    heardAt: 1,
    budget: BUDGET,
    jobs: mapped(job(1), job(2, { class: "bert", name: "eves" })),
  };
});
afterEach(() => {
  cleanup();
  live.picture = NOTHING;
  vi.restoreAllMocks();
});

test("every team has a row with its bar in words, and what no team spends is said", () => {
  render(<Teams rest={[]} />);
  const rows = within(screen.getByRole("table", { name: "Teams" })).getAllByRole("row");
  expect(rows).toHaveLength(4);
  const bar = screen.getByRole("img", {
    name: "$10.00/h spent now, $15.00/h guaranteed, $30.00/h at most",
  });
  expect(bar).toBeTruthy();
  expect(screen.getByText("owes $3.00")).toBeTruthy();
  expect(screen.getByRole("list", { name: "Spend now by team" }).textContent).toMatch(
    /no team’s:.*\$2\.00\/h/,
  );
  expect(screen.getByRole("link", { name: "eve" }).getAttribute("href")).toBe("#/teams/eve");
});

test("a team's page has its parts, its classes, and the jobs that it pays for", () => {
  render(<Teams rest={["language"]} />);
  expect(screen.getByRole("heading", { name: "language", level: 1 })).toBeTruthy();
  expect(screen.getByRole("table", { name: "It and its parts" }).textContent).toContain("eve");
  expect(screen.getByText("eves")).toBeTruthy();
  expect(screen.queryByText("train-1")).toBeNull();
});

test("a team that is not there, and a budget that nobody shares, say so", () => {
  const { unmount } = render(<Teams rest={["nobody"]} />);
  expect(screen.getByText("Nobody named “nobody” shares this budget")).toBeTruthy();
  unmount();
  live.picture = { ...live.picture, budget: { ...BUDGET, parts: [] } };
  render(<Teams rest={[]} />);
  expect(screen.getByText("Nobody shares this budget")).toBeTruthy();
});
