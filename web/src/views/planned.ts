/** The one place for the word "planned": GPUs that the plan in force has for jobs of a class. */
import type { JobDetails, PlanClass } from "../api/types";
import { gpus } from "../format";
import { choices, stretches, words } from "./budget/widths";

const MOST_STRETCHES = 3;
export const NOT_PLANNED = "not planned yet";

/** Of a class: "4×A100, then 16×A100"; of many stretches the first, the last, and how many. */
export function plannedWords(plan: PlanClass | null): string {
  if (!plan) return NOT_PLANNED;
  const found = stretches(null, plan).map((stretch) => words(stretch.after));
  if (found.length <= MOST_STRETCHES) return found.join(", then ");
  return `${found[0] ?? ""}, … ${found.at(-1) ?? ""} (${found.length} stretches)`;
}

type Job = Pick<JobDetails, "width" | "gpu_type" | "epoch" | "wanted">;

/** Of a job that has not ended: what its class's plan has for its epoch, and what it is to get. Where
 * whole nodes are paid for, a job may be given other GPUs than those that are planned on average. */
export function jobPlannedWords(job: Job, plan: PlanClass | null): string {
  const has = gpus(job.width, job.gpu_type);
  const wanted = job.wanted ? gpus(job.wanted.width, job.wanted.gpu_type) : has;
  const coming = wanted === has ? "" : `, to get: ${wanted}`;
  const epochs = plan ? choices(plan) : [];
  const mine = epochs[Math.min(job.epoch, epochs.length - 1)] ?? [];
  if (mine.length === 0) return NOT_PLANNED + coming;
  const asPlanned = mine.some(({ width, type }) => gpus(width, type) === has);
  return (asPlanned ? "as planned" : `planned: ${words(mine)}`) + coming;
}
