/** Those who share the budget: who is within whom, who pays for what, and how they stand in words. */
import type { Budget, BudgetPart } from "../../api/types";
import { usd, usdPerHour } from "../../format";
import { payerIn } from "../../streams";

export type Part = BudgetPart;

/** Rates that are no further apart, by half a cent or by this part, are the same to a reader. */
const CENT = 0.005;
const NEAR = 0.02;
const MOST_COLORS = 8;

/** A colour for each team, which its parts have, too. */
export function colorsOf(parts: readonly Part[]): ReadonlyMap<string, string> {
  const colors = new Map<string, string>();
  let teams = 0;
  for (const { name, above } of parts) {
    const its = above === null ? undefined : colors.get(above);
    colors.set(name, its ?? `var(--c${(teams++ % MOST_COLORS) + 1})`);
  }
  return colors;
}

/** How deep each stands below the whole; told from the top down. */
export function depthsOf(parts: readonly Part[]): ReadonlyMap<string, number> {
  const depths = new Map<string, number>();
  for (const { name, above } of parts) depths.set(name, (depths.get(above ?? "") ?? -1) + 1);
  return depths;
}

/** A team and all that are parts of it, from the top down. */
export function withinTeam(parts: readonly Part[], name: string): Part[] {
  const inside = new Set([name]);
  return parts.filter((part) => {
    if (part.above !== null && inside.has(part.above)) inside.add(part.name);
    return inside.has(part.name);
  });
}

/** Parts that are for some people's jobs alone, also as they are within such a part. */
function forSome(parts: readonly Part[]): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { name, above, users, teams } of parts) {
    if (users.length + teams.length > 0 || found.has(above ?? "")) found.add(name);
  }
  return found;
}

/** Who pays for jobs of a class, whoever submits them; null: nobody but the whole. */
export function payerOf(parts: readonly Part[] | undefined, jobClass: string): string | null {
  const some = forSome(parts ?? []);
  const payer = parts?.find(({ name, classes }) => !some.has(name) && classes.includes(jobClass));
  return payer?.name ?? null;
}

/** Classes of a team and of all within it, and streams of theirs that are planned for. */
export function streamsWithin(
  parts: readonly Part[],
  name: string,
  planned: readonly string[],
): string[] {
  const [inside, some] = [withinTeam(parts, name), forSome(parts)];
  const names = new Set(inside.map((part) => part.name));
  const theirs = planned.filter((stream) => names.has(payerIn(stream) ?? ""));
  return [...inside.flatMap((part) => (some.has(part.name) ? [] : part.classes)), ...theirs];
}

/** Whether a team, or a part of it, pays for a job. */
export function paysFor(
  parts: readonly Part[],
  name: string,
  job: { class: string; payer: string | null },
): boolean {
  const payer = job.payer ?? payerOf(parts, job.class);
  return withinTeam(parts, name).some((part) => part.name === payer);
}

/** Whose jobs a part pays for: people, and classes. */
export function paidFor({ users, teams, classes }: Part): string {
  const people = [...users, ...teams.map((team) => `team ${team}`)];
  return [people.join(", "), classes.join(", ")].filter(Boolean).join(": ");
}

/** Spend of the whole that is no team's. */
export function othersPerHour(budget: Budget, parts: readonly Part[]): number {
  const teams = parts.filter(({ above }) => above === null);
  const theirs = teams.reduce((sum, part) => sum + part.spend_now_per_hour, 0);
  return Math.max(0, budget.spend_now_per_hour - theirs);
}

/** What all bars are drawn to: the most that any of them shows. */
export function scaleOf(parts: readonly Part[]): number {
  return Math.max(
    CENT,
    ...parts.flatMap((part) => [
      part.budget_per_hour,
      part.right_now_per_hour,
      part.max_per_hour ?? 0,
      part.spend_now_per_hour,
    ]),
  );
}

export function same(one: number, other: number): boolean {
  return Math.abs(one - other) <= Math.max(CENT, NEAR * Math.max(Math.abs(one), Math.abs(other)));
}

/** "leaves $5.00/h of the guaranteed $15.00/h, which others may have" */
export function spendWords(part: Part): string {
  const { budget_per_hour: right, spend_now_per_hour: spend, max_per_hour: most } = part;
  if (most !== null && spend > most && !same(spend, most)) {
    return `spends ${usdPerHour(spend - most)} more than its ceiling, which holds on average: it gets less until the average is kept`;
  }
  if (right < CENT) {
    return spend < CENT ? "is guaranteed nothing, and spends nothing" : "spends what others leave";
  }
  if (same(spend, right)) return `spends what it is guaranteed, ${usdPerHour(right)}`;
  if (spend > right) {
    return `spends ${usdPerHour(spend - right)} more than the guaranteed ${usdPerHour(right)}, of what others leave`;
  }
  const rest = part.lends ? "which others may have" : "which stays unspent";
  const what = spend < CENT ? "all" : usdPerHour(right - spend);
  return `leaves ${what} of the guaranteed ${usdPerHour(right)}, ${rest}`;
}

/** "has lent $12.00: until that is back, $16.20/h is guaranteed"; empty: nothing to say. */
export function loanWords(part: Part): string {
  const { lent_usd: lent, right_now_per_hour: now, budget_per_hour: right } = part;
  if (Math.abs(lent) < CENT) return "";
  const [done, until] =
    lent < 0
      ? ["owes", "it is paid back"]
      : part.lends
        ? ["has lent", "it is back"]
        : ["has not spent", "it is"];
  const changed = same(now, right) ? "" : `: until ${until}, ${usdPerHour(now)} is guaranteed`;
  return `${done} ${usd(Math.abs(lent))}${changed}`;
}

/** "lent $12.00", "owes $3.00": where there is little room. */
export function loanText({ lent_usd: lent, lends }: Part): string {
  if (Math.abs(lent) < CENT) return "–";
  return `${lent < 0 ? "owes" : lends ? "lent" : "kept"} ${usd(Math.abs(lent))}`;
}

export function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
