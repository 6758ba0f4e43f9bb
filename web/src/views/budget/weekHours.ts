/** The week of a budget that changes by the hour: its days, the time in it, and its shades. */
import type { BudgetHours } from "../../api/types";

export const MINUTES_PER_DAY = 1440;
export const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] as const;

export interface Stretch {
  period: string;
  budget: number;
  /** Minutes of its day. */
  begins: number;
  ends: number;
}

export interface Day {
  name: string;
  stretches: Stretch[];
}

/** The week cut at midnights. */
export function daysOf(week: readonly BudgetHours[]): Day[] {
  return DAYS.map((name, number) => {
    const first = number * MINUTES_PER_DAY;
    const stretches = week
      .map((hours) => ({
        period: hours.period,
        budget: hours.budget_per_hour,
        begins: Math.max(0, hours.begins_minute - first),
        ends: Math.min(MINUTES_PER_DAY, hours.ends_minute - first),
      }))
      .filter(({ begins, ends }) => begins < ends);
    return { name, stretches };
  });
}

/** Minute of the week that clocks of a zone show; null: this browser does not know the zone. */
export function minuteOfWeek(at: number, zone: string): number | null {
  try {
    const format = new Intl.DateTimeFormat("en", {
      timeZone: zone,
      weekday: "short",
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
    });
    const parts = new Map(format.formatToParts(at * 1000).map(({ type, value }) => [type, value]));
    const day = DAYS.findIndex((name) => name === parts.get("weekday"));
    return day * MINUTES_PER_DAY + Number(parts.get("hour")) * 60 + Number(parts.get("minute"));
  } catch {
    return null;
  }
}

/** "08:00"; the end of a day is 24:00. */
export function clockOf(minute: number): string {
  const two = (part: number) => String(part).padStart(2, "0");
  return `${two(Math.floor(minute / 60))}:${two(minute % 60)}`;
}

/** "Mon: night until 08:00, day until 24:00" */
export function dayWords({ name, stretches }: Day): string {
  const told = stretches.map(({ period, ends }) => `${period} until ${clockOf(ends)}`);
  return `${name}: ${told.join(", ")}`;
}

export interface Period {
  name: string;
  budget: number;
  /** Percent of full colour: the more money, the darker. No two are alike, in grey either. */
  shade: number;
}

const [LIGHTEST, DARKEST] = [18, 100];

/** Those that the week has, in the order in which they come. */
export function periodsOf(week: readonly BudgetHours[]): Period[] {
  const budgets = new Map(week.map(({ period, budget_per_hour: budget }) => [period, budget]));
  const ranked = [...budgets].sort(([, one], [, other]) => one - other).map(([name]) => name);
  const step = (DARKEST - LIGHTEST) / Math.max(1, ranked.length - 1);
  return [...budgets].map(([name, budget]) => ({
    name,
    budget,
    shade: Math.round(DARKEST - step * (ranked.length - 1 - ranked.indexOf(name))),
  }));
}
