import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { ApiError } from "../api/client";
import type { Budget as Money, BudgetCalendar, Cost, Frontier } from "../api/types";
import { NOTHING, type Picture } from "../state/live";
import { live } from "../state/hooks";
import { client } from "../state/session";
import { Budget } from "./Budget";

const NOW = Date.UTC(2026, 10, 16) / 1000;
const MONEY: Money = {
  budget_per_hour: 10,
  max_spend_per_hour: null,
  effective_budget_per_hour: 10,
  average_spend_per_hour: 11.5,
  spend_now_per_hour: 12,
  since: NOW - 86_400,
  now: NOW,
};
const COST: Cost = {
  ...MONEY,
  allowed_per_hour: 10,
  until: NOW,
  total_usd: 276,
  jobs_usd: 276,
  idle_usd: 0,
  provisioning_usd: 0,
  forecast_month_usd: 4000,
  forecast_over_s: 86_400,
  forecast_pace_per_hour: 11.5,
};

const CALENDAR: BudgetCalendar = {
  period: "day",
  next_at: null,
  next_period: "night",
  next_budget_per_hour: 30,
  week_budget_per_hour: 20,
  month_left_usd: 9000,
  ends_at: null,
  time_zone: "UTC",
  allowed_per_hour: 11.5,
  average_per_hour: {},
  words: "period day",
  week: [{ period: "day", budget_per_hour: 10, begins_minute: 0, ends_minute: 10_080 }],
};

function seen(part: Partial<Picture>): void {
  live.picture = {
    ...NOTHING,
    connection: "live",
    heardAt: 1,
    now: NOW,
    complete: true,
    budget: MONEY,
    counts: { running: 4, waiting: 2, starting: 1 },
    ...part,
  };
}

let asked: string[] = [];
beforeEach(() => {
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe() {
        return undefined;
      }
      disconnect() {
        return undefined;
      }
    },
  );
  asked = [];
  vi.spyOn(client, "get").mockImplementation((path: string) => {
    asked.push(path);
    if (path.startsWith("/cost")) return Promise.resolve(COST as never);
    return Promise.reject(new ApiError(503, "the service is busy"));
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  live.picture = NOTHING;
});

it("says once that it is too soon for a verdict", async () => {
  const early = { ...COST, forecast_over_s: 618, total_usd: 2, forecast_basis: "short" as const };
  vi.spyOn(client, "get").mockImplementation((path: string) =>
    path.startsWith("/cost")
      ? Promise.resolve(early as never)
      : Promise.reject(new ApiError(503, "the service is busy")),
  );
  seen({});
  render(<Budget />);
  const [first] = await screen.findAllByText(/Too soon to say: 10.3 min so far/);
  expect(first?.closest("p")?.textContent).not.toContain("too soon to say");
  const tile = screen.getByText("Average bill").parentElement?.textContent;
  expect(tile).toMatch(/^Average bill\$11\.50\/hsince/);
});

it("says in its first line whether the budget is kept, of the same bill as its tiles", async () => {
  seen({});
  render(<Budget />);
  await screen.findByText(/if the bill stays at/);
  const said = screen.getAllByRole("status").map((each) => each.textContent);
  expect(said).toContain("15 % over budget");
  const [first] = screen.getAllByRole("paragraph");
  expect(first?.textContent).toMatch(/^15 % over budget\. .*The average bill is \$11\.50\/h since/);
  const tile = (label: string) => screen.getByText(label).parentElement?.textContent;
  expect(tile("Average bill")).toMatch(/\$11\.50\/h15 % over budgetsince/);
  expect(tile("Forecast of the month")).toContain("for Nov 1–30, if the bill stays at $11.50/h");
  expect(tile("Forecast of the month")).not.toContain("%");
  expect(screen.getByText("Planned with").closest("details")?.open).toBe(false);
});

it("holds a calendar’s week against what the jobs need, and names the period", async () => {
  const FRONTIER: Frontier = {
    plan: 3,
    gain: 1,
    points: [
      { budget_per_hour: 15, average_jct_s: 900 },
      { budget_per_hour: 60, average_jct_s: 300 },
    ],
    cheapest_per_hour: 15,
    fastest_per_hour: 60,
    fastest_jct_s: 300,
    now: NOW,
  };
  vi.spyOn(client, "get").mockImplementation((path: string) =>
    path.startsWith("/frontier")
      ? Promise.resolve(FRONTIER as never)
      : path.startsWith("/cost")
        ? Promise.resolve({ ...COST, forecast_allowed_per_hour: 11.5 } as never)
        : Promise.reject(new ApiError(503, "the service is busy")),
  );
  seen({ plan: 3, budget: { ...MONEY, calendar: CALENDAR } });
  render(<Budget />);
  const week = "the budget is $20.00/h over a week, $10.00/h in day, which holds now.";
  const headline = await screen.findByText(/One more dollar per hour would save/);
  expect(headline.textContent).toContain(week);
  expect(headline.textContent).not.toContain("Too small");
  expect(screen.getAllByRole("status")[0]?.textContent).toBe("on budget");
});

it("counts the jobs that run and wait", () => {
  seen({});
  render(<Budget />);
  expect(screen.getByText("4 running")).toBeDefined();
  expect(screen.getByText("2 waiting, 1 starting or rescaling")).toBeDefined();
});

it("explains what to do where nothing is planned yet, and asks for no frontier", async () => {
  seen({ plan: null });
  render(<Budget />);
  expect(screen.getByText("Nothing is planned yet")).toBeDefined();
  expect(screen.getByText("boa submit job.yaml")).toBeDefined();
  await screen.findAllByText("15 % over budget");
  expect(asked.filter((path) => path.startsWith("/frontier"))).toEqual([]);
});

it("shows the service's words where the frontier is refused", async () => {
  seen({ plan: 3 });
  render(<Budget />);
  const said = await screen.findAllByText("the service is busy");
  expect(said.length).toBeGreaterThan(0);
});
