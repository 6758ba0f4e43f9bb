/** What is said of a budget that was set here, and for how long. */
import { settable } from "../../format";

export interface Applied {
  budget: number;
  /** Number of the plan that was in force before. */
  before: number;
  /** Whether the picture has shown it: that is a moment later. */
  seen: boolean;
  /** Number of the first plan that follows it. */
  plan: number | null;
}

/** What is to be said now; null: it has been said, or is no longer so. The same object: no news. */
export function noted(was: Applied, budget: number, plan: number | null): Applied | null {
  const mine = budget === settable(was.budget);
  if (was.seen && !mine) return null; // changed again, here or elsewhere
  if (was.plan !== null && plan !== was.plan) return null;
  const seen = was.seen || mine;
  const first = was.plan ?? (seen && plan !== was.before ? plan : null);
  return seen === was.seen && first === was.plan ? was : { ...was, seen, plan: first };
}
