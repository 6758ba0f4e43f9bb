/** What came of simulations: lines to draw, and what they say in words. */
import type { Comparison, ComparisonPoint, RivalPoint, Simulation } from "../../api/types";
import { colorAt } from "../../charts/colors";
import type { Series } from "../../charts/data";
import { duration, figure, percent, trimmed, usdPerHour } from "../../format";

export type Money = "bill" | "spend";
export type Measure = "average_jct_s" | "p95_jct_s";
const SAME = 0.02;
/** Ratios so near to 1 that nobody would notice. */

export interface Finished extends Simulation {
  result: Comparison;
}

export function isFinished(simulation: Simulation): simulation is Finished {
  return simulation.result !== undefined;
}

/** Points with the money that they are compared at as their spend: the bill, where nodes are billed. */
export function pointsOf(result: Comparison): readonly ComparisonPoint[] {
  if (result.billing !== "node") return result.points;
  return result.points.map((point) => ({
    ...point,
    spend_per_hour: point.bill_per_hour ?? point.spend_per_hour,
  }));
}

/** "bill" where all of them were billed by the node. */
export function moneyWord(finished: readonly Finished[]): Money {
  return finished.every(({ result }) => result.billing === "node") ? "bill" : "spend";
}

/** One line per policy and simulation, by rising spend; BOA's first, so that it keeps its colour. */
export function seriesOf(finished: readonly Finished[], measure: Measure): Series[] {
  const lines = finished.flatMap((simulation, nth) =>
    [...byPolicy(pointsOf(simulation.result))].map(([policy, points]) => ({
      policy,
      name: finished.length > 1 ? `${policy} (${simulation.trace}, no. ${simulation.id})` : policy,
      points,
      dashed: nth > 0,
    })),
  );
  lines.sort((a, b) => Number(b.policy === "boa") - Number(a.policy === "boa"));
  return lines.map(({ name, points, dashed }, index) => ({
    name,
    color: colorAt(index),
    points: points.map((point) => [point.spend_per_hour, point[measure]] as const),
    dots: points.map((point) => ({ radius: 4, text: told(point) })),
    dashed,
  }));
}

function byPolicy(points: readonly ComparisonPoint[]): Map<string, ComparisonPoint[]> {
  const found = new Map<string, ComparisonPoint[]>();
  for (const point of points) {
    const list = found.get(point.policy);
    if (list) list.push(point);
    else found.set(point.policy, [point]);
  }
  for (const list of found.values()) list.sort((a, b) => a.spend_per_hour - b.spend_per_hour);
  return found;
}

/** "budget $87.00/h", "target 50 %", "12 nodes", "4 GPUs each". */
export function told({ knob, value }: Pick<ComparisonPoint, "knob" | "value">): string {
  if (knob === null || value === null) return "–";
  if (knob === "budget" && typeof value === "number") return `budget ${usdPerHour(value)}`;
  if (knob === "target_efficiency" && typeof value === "number") {
    return `target ${percent(value)}`;
  }
  if (knob === "nodes") return `${value} nodes`;
  if (knob === "width") return `${value} GPUs each`;
  return `${knob} ${value}`;
}

/** A rival's point beside BOA at the same spend; null where BOA was not simulated that far. */
export function rivalOf(result: Comparison, point: ComparisonPoint): RivalPoint | null {
  const same = (rival: RivalPoint) =>
    rival.policy === point.policy && rival.knob === point.knob && rival.value === point.value;
  return result.comparisons.find(same) ?? null;
}

/** What a simulation says, one sentence per rival. */
export function sentences(result: Comparison): string[] {
  const policies = [...new Set(result.points.map((point) => point.policy))];
  if (!policies.includes("boa")) return [];
  return policies
    .filter((policy) => policy !== "boa")
    .map((policy) => {
      const found = result.comparisons.filter((rival) => rival.policy === policy);
      const money = result.billing === "node" ? "bill" : "spend";
      return found.length > 0
        ? compared(policy, found, money)
        : apart(policy, pointsOf(result), money);
    });
}

function compared(policy: string, found: readonly RivalPoint[], money: Money): string {
  const sorted = [...found].sort((a, b) => spendOf(a) - spendOf(b));
  const middle = sorted[Math.floor((sorted.length - 1) / 2)];
  if (!middle) return "";
  const at = money === "bill" ? "At a bill of" : "At";
  const first = `${at} ${spendWords(middle)} ${sooner(policy, middle.jct_ratio)}`;
  const ratios = sorted.map((rival) => rival.jct_ratio);
  const [low, high] = [Math.min(...ratios), Math.max(...ratios)];
  const [from, to] = [sorted[0], sorted.at(-1)];
  if (!from || !to || trimmed(low, 2) === trimmed(high, 2)) return `${first}.`;
  const range = `${trimmed(low, 2)} to ${trimmed(high, 2)} times as long`;
  return `${first}; from ${spendWords(from)} to ${spendWords(to)}, ${policy}’s take ${range}.`;
}

function sooner(policy: string, ratio: number): string {
  if (Math.abs(ratio - 1) <= SAME) return `BOA’s and ${policy}’s jobs take about as long`;
  if (ratio > 1) return `BOA’s jobs finish ${trimmed(ratio, 2)}× sooner than ${policy}’s`;
  return `${policy}’s jobs finish ${trimmed(1 / ratio, 2)}× sooner than BOA’s`;
}

function spendOf(rival: RivalPoint): number {
  return rival.at_spend_per_hour ?? rival.at_gpus ?? 0;
}

function spendWords(rival: RivalPoint): string {
  const gpus = rival.at_gpus;
  return gpus === undefined ? usdPerHour(spendOf(rival)) : `${figure(gpus)} GPUs`;
}

/** No point of the rival lies where BOA was simulated: what can be said, or where to look. */
function apart(policy: string, points: readonly ComparisonPoint[], money: Money): string {
  const of = (name: string) =>
    points
      .filter((point) => point.policy === name)
      .sort((a, b) => a.spend_per_hour - b.spend_per_hour);
  const [mine, theirs] = [of("boa"), of(policy)];
  const better = faster(mine, theirs);
  if (better) return `BOA’s jobs finish sooner for less than ${policy}’s: ${better}.`;
  const worse = faster(theirs, mine);
  if (worse) return `${policy}’s jobs finish sooner for less than BOA’s: ${worse}.`;
  const middle = theirs[Math.floor(theirs.length / 2)]?.spend_per_hour ?? 0;
  return (
    `${policy} spent ${range(theirs)}, BOA ${range(mine)}: nothing can be said at the same ${money}. ` +
    `Ask again with budgets around ${usdPerHour(middle)}.`
  );
}

/** The first of the dearer points, by spend, that a cheaper one beats; "" if there is none. */
function faster(some: readonly ComparisonPoint[], others: readonly ComparisonPoint[]): string {
  for (const other of others) {
    const best = some.findLast(
      (one) =>
        one.spend_per_hour <= other.spend_per_hour && one.average_jct_s <= other.average_jct_s,
    );
    if (best) return `${jctWords(best)} against ${jctWords(other)}`;
  }
  return "";
}

function jctWords(point: ComparisonPoint): string {
  return `${duration(point.average_jct_s)} at ${usdPerHour(point.spend_per_hour)}`;
}

function range(found: readonly ComparisonPoint[]): string {
  const [low, high] = [found[0]?.spend_per_hour ?? 0, found.at(-1)?.spend_per_hour ?? 0];
  return low === high ? usdPerHour(low) : `${usdPerHour(low)} to ${usdPerHour(high)}`;
}
