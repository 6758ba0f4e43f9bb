/** Money in words: on budget or not, what a month will have cost, what one more dollar buys. */
import type { Budget, Cost, Frontier, Unused } from "../../api/types";
import { days, duration, percent, plural, trimmed, usd, usdPerHour } from "../../format";
import type { Tone } from "../../parts/basics";
import { monthOf } from "../../state/ranges";

export const HOUR_S = 3600;
const ON_BUDGET = 0.02;
const FAR_OVER = 0.1;
const LEAST_HOURS = 1;
/** Of shorter averages nothing is said: one node more or less would decide. */

/** What is set, and held against a workload: by a calendar its week on average, not the hour's. */
export function usualBudget({ budget_per_hour: now, calendar }: Budget): number {
  return calendar?.week_budget_per_hour ?? now;
}

/** Name of the calendar's period that holds; null: there is none, or the budget has ended. */
export function periodOf({ calendar }: Budget): string | null {
  return calendar?.period ?? null;
}

/** "$75.00/h", or by a calendar "$75.00/h over a week, $60.00/h in day, which holds now". */
export function budgetWords(week: number, period: string | null, now: number): string {
  if (period === null) return usdPerHour(week);
  return `${usdPerHour(week)} over a week, ${usdPerHour(now)} in ${period}, which holds now`;
}

export interface Verdict {
  tone: Tone;
  words: string;
}

/** An average against the budget. `hours`: that it is over. */
export function verdict(average: number, budget: number, hours: number): Verdict {
  if (!(hours > 0)) return { tone: "plain", words: "nothing rented yet" };
  if (hours < LEAST_HOURS) {
    return { tone: "plain", words: `too soon to say: ${duration(hours * HOUR_S)} so far` };
  }
  const over = average / budget - 1;
  if (Math.abs(over) <= ON_BUDGET) return { tone: "good", words: "on budget" };
  if (over < 0) return { tone: "good", words: `${percent(-over)} under budget` };
  const words = over < 1 ? `${percent(over)} over budget` : `${trimmed(over + 1, 1)}× the budget`;
  return { tone: over > FAR_OVER ? "bad" : "warn", words };
}

/** The average bill, and the budget over the same time: headline, tile, forecast and
 * `boa cost` go by it. */
export interface AverageBill {
  perHour: number;
  allowed: number;
  hours: number;
  since: number;
}

export function averageBill(cost: Cost): AverageBill {
  const seconds = cost.forecast_over_s ?? 0;
  return {
    perHour: cost.forecast_pace_per_hour ?? cost.average_spend_per_hour,
    allowed: cost.forecast_allowed_per_hour ?? cost.allowed_per_hour,
    hours: seconds / HOUR_S,
    since: cost.now - seconds,
  };
}

/** Whether the average bill is on budget. */
export function billVerdict(cost: Cost): Verdict {
  const { perHour, allowed, hours } = averageBill(cost);
  return verdict(perHour, allowed, hours);
}

/** Hours that an average is over: the service leaves out what was before anything was rented. */
export function hoursOf(cost: Cost): number {
  return cost.average_spend_per_hour > 0 ? cost.total_usd / cost.average_spend_per_hour : 0;
}

export interface Forecast {
  /** Null: it is too soon to say. */
  amount: number | null;
  /** What it stands on; or why there is none. */
  words: string;
}

/** Where the month ends if the average bill stays as it is. It has no verdict of its own: that of
 * the average bill is its, too. Nothing is made of less than an hour. */
export function forecastOf(cost: Cost): Forecast {
  const { perHour, hours } = averageBill(cost);
  if (cost.forecast_basis === "none") {
    return { amount: null, words: "too soon to say: nothing spent so far" };
  }
  const amount = cost.forecast_month_usd;
  if (amount === null) {
    const over = duration(hours * HOUR_S);
    return { amount: null, words: `too soon to say: ${over} of spending, and it takes an hour` };
  }
  const { begin, end } = monthOf(cost.now);
  return {
    amount,
    words: `for ${days(begin, end)}, if the bill stays at ${usdPerHour(perHour)}`,
  };
}

/** Between what the month ends in four of five cases; empty: too little is known. */
export function bandWords(cost: Cost): string {
  const [low, high] = [cost.forecast_low_usd ?? null, cost.forecast_high_usd ?? null];
  if (low === null || high === null) return "";
  return `four of five times ${usd(low)} to ${usd(high)}`;
}

/** The best average JCT for a budget, by the frontier; null below the cheapest. */
export function jctAt(frontier: Frontier, budget: number): number | null {
  const { points } = frontier;
  const next = points.findIndex((point) => point.budget_per_hour >= budget);
  if (next < 0) return points.at(-1)?.average_jct_s ?? null;
  const [a, b] = [points[next - 1], points[next]];
  if (!b) return null;
  if (!a) return budget < b.budget_per_hour * (1 - 1e-9) ? null : b.average_jct_s;
  const part = (budget - a.budget_per_hour) / (b.budget_per_hour - a.budget_per_hour);
  return a.average_jct_s + part * (b.average_jct_s - a.average_jct_s);
}

/** "One more dollar per hour would save 12 s per job on average." */
export function dollarWords(frontier: Frontier, budget: number): string {
  const here = jctAt(frontier, budget);
  if (here === null) return "";
  const [step, name] = budget < 5 ? [0.1, "Ten cents more"] : [1, "One more dollar"];
  const saved = here - (jctAt(frontier, budget + step) ?? here);
  if (saved < 0.05) return "More money would not make jobs any faster.";
  return `${name} per hour would save ${duration(saved)} per job on average.`;
}

/** What more money would do; where the budget or the cap does not even do, what is needed. */
export function moreWords(frontier: Frontier, budget: number, cap: number | null): string {
  const least = frontier.cheapest_per_hour;
  const binds = cap !== null && cap < budget;
  if ((binds ? cap : budget) < least * (1 - 1e-6)) return shortWords(least, budget, cap);
  const enough = frontier.fastest_per_hour;
  if (!binds || cap >= enough) return dollarWords(frontier, budget);
  return `The hard cap of ${usdPerHour(cap)} is below this budget: no more than the cap is ever spent.`;
}

/** That the money does not do, and whose fault it is. */
export function shortWords(least: number, budget: number, cap: number | null): string {
  if (cap !== null && cap < budget) {
    const needs = cap < least ? ` (${usdPerHour(least)})` : "";
    return `The hard cap of ${usdPerHour(cap)} is below what this workload needs${needs}: jobs will wait longer and longer.`;
  }
  return `Too small: this workload needs at least ${usdPerHour(least)}, and the service will spend that.`;
}

/** What plans for a budget are made with, and why, where that is not the budget; "" if it is. */
export function billWords(
  gain: number,
  planned: number,
  budget: number,
  cap: number | null,
): string {
  if (cap !== null && cap < budget && planned >= cap * (1 - 1e-9)) {
    return `Planned with ${usdPerHour(cap)}: the hard cap, which is below this budget.`;
  }
  if (Math.abs(gain - 1) < 0.01) return "";
  const why = gain > 1 ? ": idle and booting nodes cost, too" : "";
  return `Planned with ${usdPerHour(planned)}, since a planned dollar has come to ${usd(gain)} on the bill so far${why}.`;
}

/** What is planned with, and why, where that is not the budget itself. */
export function pacingWords(budget: number, effective: number, cap: number | null): string {
  if (Math.abs(effective / budget - 1) < 0.01) return "Plans are made with the budget itself.";
  const capped = cap !== null && effective >= cap * (1 - 1e-9);
  if (capped && cap < budget) {
    return `The hard cap is below the budget: plans are made for ${usdPerHour(cap)}.`;
  }
  const why =
    effective > budget
      ? "less was spent than allowed, or plans came out cheaper"
      : "more was spent than allowed, or plans came out dearer, since idle and booting nodes cost too";
  return `Plans are made with ${usdPerHour(effective)} at present, so that the average comes out at the budget: ${why}.`;
}

/** What GPUs that no job holds are paid for, and what their nodes are worth to jobs. */
export function unusedWords(one: Unused): string {
  const nodes = plural(one.nodes, "node");
  const gpus = plural(one.gpus, "idle GPU");
  const [single, worth] = [one.nodes === 1, one.nodes_worth_per_hour];
  const words = {
    booting: `for ${nodes} that ${single ? "boots" : "boot"}`,
    idle: `for ${gpus} on ${nodes} that ${single ? "is" : "are"} kept`,
    draining: `for ${gpus} on ${nodes} that ${single ? "goes" : "go"} once empty`,
    leaving: `for ${nodes} given back and not gone yet`,
  }[one.why];
  if (worth === null || one.why === "leaving") return words;
  return `${words}: worth ${usdPerHour(worth)} to jobs, for ${usdPerHour(one.nodes_per_hour)}`;
}
