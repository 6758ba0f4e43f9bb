/** Averages of a day, a week and a month, without those that say the same. */
import type { Cost } from "../../api/types";
import { HOUR_S, hoursOf } from "./money";

export interface Averaged<T> {
  label: string;
  cost: T;
}

const SAME_S = 60;
const SAME_PART = 0.005;

/** Those that reach back to different moments. On a first day all of them reach back to the first
 * node, and are one. */
export function distinct<T extends { data: Cost | null }>(all: readonly Averaged<T>[]) {
  const found: Averaged<T>[] = [];
  for (const one of all) {
    const at = found.findIndex((other) => same(other.cost.data, one.cost.data));
    const known = found[at];
    if (!known) found.push(one);
    else if (isShort(one.cost.data)) found[at] = { ...known, label: "Average so far" };
  }
  return found;
}

function same(one: Cost | null, other: Cost | null): boolean {
  if (!one || !other) return false;
  const [a, b] = [hoursOf(one), hoursOf(other)];
  if (a === 0 || b === 0) return a === b;
  const apart = Math.abs(one.until - a * HOUR_S - (other.until - b * HOUR_S));
  return apart <= SAME_S + SAME_PART * a * HOUR_S;
}

/** Whether it is over less than it was asked for: nothing was rented before. */
export function isShort(cost: Cost | null): boolean {
  if (!cost) return false;
  return cost.now - cost.since > (hoursOf(cost) + 0.1) * HOUR_S;
}
