/** The slider's scale: even steps are even ratios, since money buys less and less. */
import { settable, settableDigits } from "../../format";

export const STEPS = 1000;
const SPARE = 0.06;
/** Of both ends, beyond what is worth having: so that one sees that it ends there. */

export interface BudgetScale {
  low: number;
  high: number;
}

/** From a little under the cheapest budget to a little over the fastest; others are let in. */
export function scaleFor(cheapest: number, fastest: number, ...others: number[]): BudgetScale {
  const inside = [cheapest, fastest, ...others].filter((each) => each > 0);
  if (inside.length === 0) return { low: 1, high: 10 };
  return { low: Math.min(...inside) * (1 - SPARE), high: Math.max(...inside) * (1 + SPARE) };
}

export function budgetAt(scale: BudgetScale, step: number): number {
  return settable(scale.low * (scale.high / scale.low) ** (step / STEPS));
}

export function stepOf(scale: BudgetScale, budget: number): number {
  if (!(budget > 0)) return 0;
  const step = (Math.log(budget / scale.low) / Math.log(scale.high / scale.low)) * STEPS;
  return Math.round(Math.max(0, Math.min(STEPS, step)));
}

/** Never less than what is needed. */
export function roundedUp(budget: number): number {
  const parts = 10 ** settableDigits(budget);
  return settable(Math.ceil(budget * parts - 1e-6) / parts);
}

const MOST = 1e15;
const PLAIN = /^(\d+\.?\d*|\.\d+)$/;
/** A comma before exactly three digits is one of thousands. */
const THOUSANDS = /^[1-9]\d{0,2}(,\d{3})+(\.\d*)?$/;
/** Many write 60,5 for sixty and a half. */
const DECIMALS = /^(0,\d+|\d+,(\d{1,2}|\d{4,}))$/;

/** What somebody typed as an amount; null: it is none. "$1,200.50" is one, and "60,5". */
export function amount(text: string): number | null {
  const value = typed(text);
  return value !== null && value > 0 && value <= MOST ? value : null;
}

/** Why it is none, in words; "" where it is one. */
export function amountProblem(text: string): string {
  if (amount(text) !== null) return "";
  if ((typed(text) ?? 0) > MOST) return "That is more than any budget can be.";
  return "An amount above 0, such as 14.50.";
}

function typed(text: string): number | null {
  const bare = text.trim().replace(/^\$/, "").replace(/\/h$/, "").trim();
  if (THOUSANDS.test(bare)) return Number(bare.replaceAll(",", ""));
  if (DECIMALS.test(bare)) return Number(bare.replace(",", "."));
  return PLAIN.test(bare) ? Number(bare) : null;
}

export type TimeUnit = "s" | "min" | "h";

const SECONDS: Record<TimeUnit, number> = { s: 1, min: 60, h: 3600 };

export function inSeconds(value: number, unit: TimeUnit): number {
  return value * SECONDS[unit];
}

/** The unit in which a time has few digits before the point. */
export function unitFor(seconds: number): TimeUnit {
  if (seconds >= 2 * 3600) return "h";
  return seconds >= 120 ? "min" : "s";
}
