/** Fields of the dialog, as they are typed. */
export interface Wishes {
  priority: string;
  weight: string;
  max_gpus: string;
  max_cost: string;
  /** One in a line: "project=cats". */
  tags: string;
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
  const tags = tagChanges(wishes.tags, (spec.tags ?? {}) as Tags);
  if (Object.keys(tags).length > 0) changes.tags = tags;
  return changes;
}

export type Tags = Readonly<Record<string, string>>;

/** As they are typed. */
export function tagText(tags: Tags): string {
  return Object.entries(tags)
    .map(([kind, value]) => `${kind}=${value}`)
    .join("\n");
}

/** Those that differ; null: taken away. Throws where something is no tag. */
function tagChanges(text: string, tags: Tags): Record<string, string | null> {
  const typed = new Map(
    text
      .split("\n")
      .map((part) => part.trim())
      .filter(Boolean)
      .map((part): [string, string] => {
        const [kind = "", ...rest] = part.split("=");
        if (!kind.trim() || !rest.join("=").trim()) {
          throw new Error(`Tags: “${part}” is no KIND=VALUE, such as project=cats.`);
        }
        return [kind.trim(), rest.join("=").trim()];
      }),
  );
  const gone = Object.keys(tags).filter((kind) => !typed.has(kind));
  const others = [...typed].filter(([kind, value]) => tags[kind] !== value);
  return { ...Object.fromEntries(gone.map((kind) => [kind, null])), ...Object.fromEntries(others) };
}
