/** What was learned of a class, and what the plan has for it, as figures and words. */
import type { ClassDocument, ClassOnType, Plan, PlanClass } from "../../api/types";
import { duration, figure, gpus } from "../../format";
import { classOf } from "../../streams";
import { stretches } from "../budget/widths";

/** Widths that the plan has on a type, rising. */
export function plannedOn(plan: PlanClass | null, type: string): number[] {
  if (!plan) return [];
  const found = new Set<number>();
  for (const { after } of stretches(null, plan)) {
    for (const choice of after) if (choice.type === type) found.add(choice.width);
  }
  return [...found].sort((a, b) => a - b);
}

/** How long a job takes on the fewest GPUs of the first type: its size, in words. */
export function sizeOf(known: ClassDocument): { seconds: number; on: string } | null {
  const [first] = known.gpu_types;
  const [width, rate] = [first?.curve.widths[0], first?.curve.rate[0]];
  if (!first || width === undefined || !rate) return null;
  const work = known.work.reduce((sum, each) => sum + each, 0);
  return { seconds: work / rate, on: gpus(width, first.name) };
}

export function sizeWords(known: ClassDocument): string {
  const size = sizeOf(known);
  return size ? `${duration(size.seconds)} on ${size.on}` : "not known yet";
}

/** The plan of a class, or of a stream; where several pay for a class, of what is spent most on. */
export function ofPlan(plan: Plan | null, name: string): PlanClass | null {
  const exact = plan?.classes.find((one) => one.name === name);
  return exact ?? streamsOf(plan, name).toSorted(dearestFirst)[0] ?? null;
}

/** A class by who pays for it. */
export function streamsOf(plan: Plan | null, name: string): readonly PlanClass[] {
  return plan?.classes.filter((one) => classOf(one.name) === name) ?? [];
}

function dearestFirst(one: PlanClass, other: PlanClass): number {
  return other.spend_per_hour - one.spend_per_hour;
}

/** Part of all that the plan spends. */
export function shareOfSpend(plan: Plan | null, name: string): number | null {
  const mine = streamsOf(plan, name);
  const all = spendOf(plan?.classes ?? []);
  return mine.length > 0 && all > 0 ? spendOf(mine) / all : null;
}

function spendOf(streams: readonly PlanClass[]): number {
  return streams.reduce((sum, one) => sum + one.spend_per_hour, 0);
}

/** A share of jobs that is not worth a word. */
export const TOO_FEW = 0.005;

/** Over the epochs done: who gets how many GPUs. One line per share of the jobs. */
export function widthLines(plan: PlanClass): { name: string; points: [number, number][] }[] {
  const variants = (plan.variants ?? []).filter((variant) => variant.share >= TOO_FEW);
  return variants.map((variant) => {
    const types = [...new Set(variant.gpu_types ?? [variant.gpu_type ?? ""])].join(", then ");
    const share = variants.length > 1 ? `${figure(variant.share * 100)} % of the jobs: ` : "";
    return { name: `${share}${types}`, points: byEpoch(variant.widths) };
  });
}

/** Each value holds from the end of the epoch before until that of its own. */
export function byEpoch<T extends number | null>(values: readonly T[]): [number, T][] {
  const points = values.map((value, epoch): [number, T] => [epoch, value]);
  const last = values.at(-1);
  if (last !== undefined) points.push([values.length, last]);
  return points;
}

export function speedupAt({ curve }: ClassOnType, width: number): number | null {
  const index = curve.widths.indexOf(width);
  return curve.speedup[index] ?? null;
}

const PARTS: Readonly<Record<string, string>> = {
  total: "in all",
  stop: "stopping the old run",
  save: "saving its state",
  start: "starting the new run",
  load: "loading the state",
  first_step: "until the first step is done",
  other: "not explained by these",
};

export function partWords(part: string): string {
  return PARTS[part] ?? part;
}
