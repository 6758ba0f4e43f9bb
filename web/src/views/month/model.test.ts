import { expect, test } from "vitest";

import type { Cost, Statement, StatementGroup } from "../../api/types";
import {
  alertsOf,
  amountOf,
  budgetPeriod,
  dayWords,
  groupsOf,
  isMonth,
  later,
  monthWords,
  present,
  taggedRows,
} from "./model";

test("a month has a name that addresses keep, and neighbours over the year's end", () => {
  expect(present(Date.UTC(2026, 11, 31, 23) / 1000)).toBe("2026-12");
  expect(later("2026-12", 1)).toBe("2027-01");
  expect(later("2026-01", -1)).toBe("2025-12");
  expect(monthWords("2026-11")).toBe("November 2026");
  expect(["2026-11", "2026-13", "2026-1", "x"].map(isMonth)).toEqual([true, false, false, false]);
});

test("lists in which nobody is named are left out, and the dearest come first", () => {
  const row = (name: string | null, total_usd: number) => ({ name, total_usd }) as StatementGroup;
  const found = groupsOf({
    by_payer: [row(null, 9)],
    by_team: [row("", 9)],
    by_user: [row("mia", 1), row(null, 2), row("eve", 3)],
    by_class: [row("bert", 9)],
  } as unknown as Statement);
  expect(found.map(({ title }) => title)).toEqual(["By user", "By class"]);
  expect(found[0]?.rows.map(({ name }) => name)).toEqual(["eve", null, "mia"]);
});

test("alerts are those that the statement names, each passed on the day that brings the month's spend to it", () => {
  const day = (day: string, total_usd: number) => ({ day, total_usd });
  const by_day = [day("2026-11-01", 30), day("2026-11-02", 30), day("2026-11-12", 20)];
  const found = alertsOf({
    alerts: [50, 75, 99.5],
    by_day,
    budget_usd: 100,
  } as unknown as Statement);
  expect(found).toEqual([
    { percent: 50, day: "2026-11-02" },
    { percent: 75, day: "2026-11-12" },
    { percent: 99.5, day: null },
  ]);
  expect(dayWords("2026-11-12")).toBe("12 November");
});

test("parts that have a right and spent nothing stay in the list beside those that spent", () => {
  const payer = (name: string, total_usd: number, budget_usd: number | null) => ({
    name,
    total_usd,
    budget_usd,
  });
  const by_payer = [payer("lab", 5, 100), payer("idle", 0, 40), payer("gone", 0, null)];
  const [group] = groupsOf({
    by_payer,
    by_team: [],
    by_user: [],
    by_class: [],
  } as unknown as Statement);
  expect(group?.rows.map(({ name }) => name)).toEqual(["lab", "idle"]);
});

test("less than ten cents is shown by what was rounded to cents", () => {
  const exact_usd = { total: 0.0142, held: 0.0042, idle: 12.344, booting: 0 };
  const of = { total_usd: 0.01, held_usd: 0, idle_usd: 12.35, booting_usd: 0, exact_usd };
  expect(amountOf(of, "total")).toBe("$0.014");
  expect(amountOf(of, "held")).toBe("$0.0042");
  expect(amountOf(of, "idle")).toBe("$12.35");
  expect(amountOf(of, "booting")).toBe("$0.00");
});

test("the budget of a month in which the service began is that of its days", () => {
  const [since, end] = [Date.UTC(2026, 10, 1) / 1000, Date.UTC(2026, 11, 1) / 1000];
  const month = { since, budget_since: since, budget_until: end } as Statement;
  expect(budgetPeriod(month)).toBe("the whole month");
  expect(budgetPeriod({ ...month, budget_since: end - 11.4 * 86_400 })).toBe("Nov 19–30");
});

test("values of a tag come dearest first, what no job held among them", () => {
  const rows = [
    { tag: "zoo", total_usd: 1 },
    { tag: "", total_usd: 2 },
    { tag: null, total_usd: 3 },
  ];
  const found = taggedRows({ rows } as unknown as Cost).map(({ name }) => name);
  expect(found).toEqual(["idle and booting", "", "zoo"]);
});
