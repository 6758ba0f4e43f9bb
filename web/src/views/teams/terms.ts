/** What money of a month, a quarter or until a date comes to, and other terms of those who share it. */
import type { BudgetStretch } from "../../api/types";
import { moment, usd, usdPerHour } from "../../format";
import type { Part } from "./model";

const CENT = 0.005;

/** "this month (2026-11)" */
function nameOf({ each, name }: BudgetStretch): string {
  return each === "once" ? "in total" : `for this ${each} (${name})`;
}

/** "It has $4,000.00 for this month (2026-11): $1,200.00 is spent, $2,800.00 left until Dec 1, 00:00." */
export function stretchWords(stretch: BudgetStretch): string {
  const { allowed_usd: allowed, spent_usd: spent, left_usd: left, ends } = stretch;
  const over = spent - allowed;
  const rest = over > CENT ? `${usd(over)} more than that` : `${usd(left)} left`;
  const words = [
    `It has ${usd(allowed)} ${nameOf(stretch)}: ${usd(spent)} is spent, ${rest} until ${moment(ends)}.`,
    rolledWords(stretch),
    stretch.used_up && "It is used up.",
    stretch.each !== "once" &&
      (stretch.rolls_over
        ? `What is left then, or owed, goes into the next ${stretch.each}.`
        : "What is left then is nobody’s."),
  ];
  return words.filter(Boolean).join(" ");
}

function rolledWords({ each, rolled_usd: rolled }: BudgetStretch): string {
  if (Math.abs(rolled) < CENT) return "";
  return rolled > 0
    ? `${usd(rolled)} of it was left by the ${each} before.`
    : `${usd(-rolled)} less than usual: the ${each} before spent it.`;
}

/** Terms of a part, a sentence or two each; empty: it has none of its own. */
export function termsOf(part: Part): string[] {
  const { stretch, max_spend_per_hour: cap, borrows } = part;
  const found: string[] = [];
  if (stretch) {
    const without = borrows ? "run on what others leave, at the least that they need" : "wait";
    const over = stretch.used_up ? ` Its jobs ${without}.` : "";
    found.push(stretchWords(stretch) + over);
  }
  if (cap !== null) {
    found.push(
      `Hard cap: its jobs never hold more than ${usdPerHour(cap)} at any moment. Those that would get fewer GPUs, or wait.`,
    );
  }
  if (!borrows) found.push("It spends its own money only, and nothing of what others leave.");
  return found;
}

/** The same where there is little room. */
export function briefTerms(part: Part): string[] {
  const { stretch, max_spend_per_hour: cap, borrows } = part;
  const found: string[] = [];
  if (stretch) {
    const left = stretch.used_up ? "nothing" : usd(stretch.left_usd);
    found.push(`${left} left of ${usd(stretch.allowed_usd)} until ${moment(stretch.ends)}`);
  }
  if (cap !== null) found.push(`never above ${usdPerHour(cap)} at any moment`);
  if (!borrows) found.push("spends its own money only");
  return found;
}
