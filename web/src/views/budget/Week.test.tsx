import { cleanup, render, screen, within } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";

import type { BudgetCalendar, BudgetHours } from "../../api/types";
import { live } from "../../state/hooks";
import { NOTHING } from "../../state/live";
import { Week } from "./Week";
import { clockOf, daysOf, dayWords, minuteOfWeek, periodsOf } from "./weekHours";

const THURSDAY_NOON = Date.UTC(2026, 10, 19, 12) / 1000;
const hours = (period: string, budget: number, begins: number, ends: number): BudgetHours => ({
  period,
  budget_per_hour: budget,
  begins_minute: begins * 60,
  ends_minute: ends * 60,
});
const WEEK = [hours("night", 30, 0, 8), hours("day", 12, 8, 20), hours("night", 30, 20, 168)];
const CALENDAR: BudgetCalendar = {
  period: "night",
  next_at: null,
  next_period: "day",
  next_budget_per_hour: 12,
  week_budget_per_hour: 28.71,
  month_left_usd: 9000,
  ends_at: null,
  time_zone: "Asia/Kolkata",
  allowed_per_hour: 20,
  average_per_hour: { night: 29.5 },
  words: "night holds: $30.00/h",
  week: WEEK,
};

afterEach(() => {
  cleanup();
  live.picture = NOTHING;
});

it("cuts the week at midnights, and loses no minute of it", () => {
  const days = daysOf(WEEK);
  expect(days.map(({ stretches }) => stretches.length)).toEqual([3, 1, 1, 1, 1, 1, 1]);
  const minutes = days.flatMap(({ stretches }) => stretches.map((one) => one.ends - one.begins));
  expect(minutes.reduce((sum, each) => sum + each)).toBe(10_080);
  expect(dayWords(days[0] ?? { name: "", stretches: [] })).toBe(
    "Mon: night until 08:00, day until 20:00, night until 24:00",
  );
});

it("reads the time on the clocks of the calendar's zone, in which clocks change", () => {
  expect(minuteOfWeek(THURSDAY_NOON, "UTC")).toBe(3 * 1440 + 720);
  expect(minuteOfWeek(THURSDAY_NOON, "Asia/Kolkata")).toBe(3 * 1440 + 17 * 60 + 30);
  const sunday = Date.UTC(2026, 2, 29) / 1000; // clocks of Berlin go forward at 01:00 UTC
  expect(minuteOfWeek(sunday, "Europe/Berlin")).toBe(6 * 1440 + 60);
  expect(minuteOfWeek(sunday + 3600, "Europe/Berlin")).toBe(6 * 1440 + 180);
  expect(minuteOfWeek(THURSDAY_NOON, "Nowhere/At_all")).toBeNull();
  expect(clockOf(65)).toBe("01:05");
});

it.each([1, 2, 3, 5])("%d periods have shades that grey keeps apart, more money darker", (many) => {
  const week = Array.from({ length: many }, (_, n) => hours(`p${n}`, 10 * n, n, n + 1));
  const shades = periodsOf(week).map(({ shade }) => shade);
  expect(shades.at(-1)).toBe(100);
  shades.slice(1).forEach((shade, n) => expect(shade - (shades[n] ?? 0)).toBeGreaterThan(19));
});

it("says each period's budget, what was spent in it, and marks now", () => {
  live.picture = { ...NOTHING, connection: "live", heardAt: performance.now(), now: THURSDAY_NOON };
  const { container } = render(<Week calendar={CALENDAR} />);
  const legend = screen.getByRole("list", { name: "What the shades mean" });
  expect(legend.textContent).toContain("night: $30.00/h, $29.50/h spent in it on average");
  expect(legend.textContent).toContain("day: $12.00/h");
  expect(legend.textContent).toContain("now: Thu 17:30, Asia/Kolkata");
  const days = within(screen.getByRole("list", { name: "Periods of the week" }));
  const rows = days.getAllByRole("listitem");
  expect(rows.map((row) => row.querySelectorAll(".week-now").length)).toEqual([
    0, 0, 0, 1, 0, 0, 0,
  ]);
  expect(container.querySelector<HTMLElement>(".week-now")?.style.left).toMatch(/^72\.9/);
});
