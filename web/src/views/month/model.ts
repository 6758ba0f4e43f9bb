/** Months: their names in addresses, and who a line of a statement is of. */
import type {
  Cost,
  ExactAmounts,
  Statement,
  StatementGroup,
  StatementPayer,
} from "../../api/types";
import { days, usd } from "../../format";
import { monthOf } from "../../state/ranges";

const NAME = /^\d{4}-(0[1-9]|1[0-2])$/;

export function isMonth(text: string): boolean {
  return NAME.test(text);
}

/** As addresses and the service have it: 2026-11. */
export function monthName(at: number): string {
  return new Date(at * 1000).toISOString().slice(0, 7);
}

/** "November 2026" */
export function monthWords(name: string): string {
  const format = new Intl.DateTimeFormat("en", { month: "long", year: "numeric", timeZone: "UTC" });
  return format.format(beginOf(name) * 1000);
}

/** So many months later; negative: earlier. */
export function later(name: string, months: number): string {
  const date = new Date(beginOf(name) * 1000);
  date.setUTCMonth(date.getUTCMonth() + months);
  return date.toISOString().slice(0, 7);
}

function beginOf(name: string): number {
  return Date.parse(`${name}-01T00:00:00Z`) / 1000;
}

export function present(now: number): string {
  return monthName(monthOf(now).begin);
}

export interface Alert {
  /** Of the month's budget. */
  percent: number;
  /** Day (UTC) on which it was spent; null: it is not. */
  day: string | null;
}

/** Those at which somebody is told; a service of before does not say. */
export function alertsOf({ alerts = [], by_day: days, budget_usd: budget }: Statement): Alert[] {
  return alerts.map((percent) => {
    let spent = 0;
    const passed = days.find((day) => {
      spent += day.total_usd;
      return spent >= (percent / 100) * budget;
    });
    return { percent, day: passed?.day ?? null };
  });
}

/** "12 November" */
export function dayWords(day: string): string {
  const format = new Intl.DateTimeFormat("en-GB", {
    month: "long",
    day: "numeric",
    timeZone: "UTC",
  });
  return format.format(Date.parse(`${day}T00:00:00Z`));
}

const FEW_CENTS = 0.0995;

/** Cents that add up; below ten of them, what they were rounded from. */
export function amountOf(of: Amounts, name: keyof ExactAmounts): string {
  const exact = of.exact_usd?.[name] ?? 0;
  return usd(exact > 0 && exact < FEW_CENTS ? exact : (of[`${name}_usd`] ?? 0));
}

type Amounts = Partial<
  Pick<StatementGroup, "exact_usd" | "total_usd" | "held_usd" | "idle_usd" | "booting_usd">
>;

/** "the whole month"; of one in which the service began: "Nov 19–30". */
export function budgetPeriod({ since, budget_since: begin, budget_until: end }: Statement): string {
  if (begin === undefined || end === undefined || begin <= since) return "the whole month";
  return days(begin, end);
}

/** Of a payer also what it is guaranteed. */
export type Row = Pick<StatementGroup, "name" | "total_usd" | "jobs" | "exact_usd"> &
  Partial<Pick<StatementPayer, "with_parts_usd" | "budget_usd">>;

export interface Grouped {
  title: string;
  /** Of lines that nobody has. */
  nobody: string;
  rows: readonly Row[];
}

/** Lists that say something: of more than those that are nobody's. */
export function groupsOf(statement: Statement): Grouped[] {
  const all: Grouped[] = [
    { title: "By payer", nobody: "nobody’s part", rows: statement.by_payer },
    { title: "By team", nobody: "no team", rows: statement.by_team },
    { title: "By user", nobody: "no token", rows: statement.by_user },
    { title: "By class", nobody: "no job", rows: statement.by_class },
  ];
  return all
    .map((group) => ({ ...group, rows: group.rows.filter(says) }))
    .filter(({ rows }) => rows.some(({ name, total_usd: spent }) => name && spent > 0))
    .map((group) => ({ ...group, rows: dearestFirst(group.rows) }));
}

/** Whether it spent anything, or could have. */
function says(row: Row): boolean {
  return row.total_usd > 0 || (row.budget_usd ?? 0) > 0;
}

function dearestFirst(rows: readonly Row[]): Row[] {
  return [...rows].sort((one, other) => other.total_usd - one.total_usd);
}

/** What the values of a tag cost; what no job held is one of them. */
export function taggedRows({ rows = [] }: Cost): Row[] {
  const found = rows
    .filter((row) => row.total_usd > 0)
    .map(({ tag, ...row }) => ({
      name: tag === null ? "idle and booting" : (tag ?? ""),
      total_usd: row.total_usd,
      jobs: 0,
    }));
  return dearestFirst(found);
}
