/** Marks on the frontier: the budget there is, and the one that is tried. */
import type { Preview } from "../../api/types";
import type { Mark } from "../../charts/data";
import { usdPerHour } from "../../format";
import type { BudgetScale } from "./scale";

const CLOSE = 0.05;
/** Two budgets so near to each other that their words would lie on top of each other. */

/** A budget that does not keep up stands where it is, not where it would keep up. */
export function marksOf(preview: Preview, tried: number, { low, high }: BudgetScale): Mark[] {
  const { unchanged } = preview;
  const now = { x: unchanged.budget_per_hour, y: unchanged.average_jct_s };
  const x = Math.max(low, Math.min(high, preview.budget_per_hour));
  const near = Math.abs(Math.log(x / now.x)) < CLOSE;
  const mine = { x, y: preview.average_jct_s, text: usdPerHour(tried), color: "var(--c2)" };
  const here = { ...now, text: near ? "" : "now", color: "var(--c3)" };
  return [here, mine];
}
