/** Fields of the dialog, as they are typed. */
export interface Wishes {
  priority: string;
  weight: string;
  max_gpus: string;
  max_cost: string;
}

/** What differs from the job as it is; an empty limit is none. */
export function changesOf(
  wishes: Wishes,
  spec: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const changes: Record<string, unknown> = {};
  const priority = spec.priority ?? "normal";
  if (wishes.priority !== priority) changes.priority = wishes.priority;
  // A priority and a number would be one idea said twice.
  const byNumber = wishes.priority === "normal" && priority === "normal";
  const weight = Number(wishes.weight);
  if (byNumber && wishes.weight !== "" && weight !== spec.weight) changes.weight = weight;
  const most = Number(wishes.max_gpus);
  const gpus = spec.gpus as { max?: number } | undefined;
  if (wishes.max_gpus !== "" && most !== gpus?.max) changes.gpus = { max: most };
  const cost = wishes.max_cost === "" ? null : Number(wishes.max_cost);
  if (cost !== (spec.max_cost ?? null)) changes.max_cost = cost;
  return changes;
}
