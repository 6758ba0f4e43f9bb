/** The slider's scale: even steps are even ratios, since money buys less and less. */

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
  return rounded(scale.low * (scale.high / scale.low) ** (step / STEPS));
}

export function stepOf(scale: BudgetScale, budget: number): number {
  if (!(budget > 0)) return 0;
  const step = (Math.log(budget / scale.low) / Math.log(scale.high / scale.low)) * STEPS;
  return Math.round(Math.max(0, Math.min(STEPS, step)));
}

/** Whole cents; of less than a dollar, hundredths of them. */
export function rounded(budget: number): number {
  const parts = partsFor(budget);
  return Math.round(budget * parts) / parts;
}

/** Never less than what is needed. */
export function roundedUp(budget: number): number {
  const parts = partsFor(budget);
  return Math.ceil(budget * parts - 1e-6) / parts;
}

function partsFor(budget: number): number {
  return budget < 1 ? 10_000 : 100;
}

/** What somebody typed as an amount; null: it is none. "$1,200.50" is one. */
export function amount(text: string): number | null {
  const plain = text.trim().replace(/^\$/, "").replace(/\/h$/, "").replaceAll(",", "").trim();
  if (!/^(\d+\.?\d*|\.\d+)$/.test(plain)) return null;
  const value = Number(plain);
  return Number.isFinite(value) && value > 0 ? value : null;
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
