/** Months: their names in addresses, and who a line of a statement is of. */
import type { Statement, StatementGroup } from "../../api/types";
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

export interface Grouped {
  title: string;
  /** Of lines that nobody has. */
  nobody: string;
  rows: readonly StatementGroup[];
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
    .map((group) => ({ ...group, rows: group.rows.filter(({ total_usd: spent }) => spent > 0) }))
    .filter(({ rows }) => rows.some(({ name }) => name))
    .map((group) => ({ ...group, rows: dearestFirst(group.rows) }));
}

function dearestFirst(rows: readonly StatementGroup[]): StatementGroup[] {
  return [...rows].sort((one, other) => other.total_usd - one.total_usd);
}
