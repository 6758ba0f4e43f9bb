/** What a class's jobs get, now and with another budget, in plain words. */
import type { ClassChange, PlanClass } from "../../api/types";
import { trimmed } from "../../format";

/** What a part of a class's jobs runs on during an epoch. */
export interface Choice {
  share: number;
  type: string;
  width: number;
}

/** Epochs in a row, counted from 1, with the same GPUs before and the same after. */
export interface Stretch {
  first: number;
  last: number;
  before: readonly Choice[];
  after: readonly Choice[];
  changed: boolean;
}

const TOO_FEW = 0.005;
/** A share of jobs that is not worth a word. */

/** By epoch: who gets what, the largest share first. */
export function choices(plan: PlanClass): Choice[][] {
  if (plan.epochs) {
    return plan.epochs.map((routes) =>
      merged(routes.map(({ share, gpu_type, width }) => ({ share, type: gpu_type, width }))),
    );
  }
  const variants = plan.variants ?? [];
  const epochs = Math.max(0, ...variants.map((variant) => variant.widths.length));
  return Array.from({ length: epochs }, (_, epoch) =>
    merged(
      variants.map((variant) => ({
        share: variant.share,
        type: variant.gpu_types?.[epoch] ?? variant.gpu_type ?? "",
        width: variant.widths[epoch] ?? 0,
      })),
    ),
  );
}

function merged(found: Choice[]): Choice[] {
  const byGpus = new Map<string, Choice>();
  for (const one of found) {
    const key = gpusOf(one);
    const known = byGpus.get(key);
    byGpus.set(key, known ? { ...known, share: known.share + one.share } : one);
  }
  return [...byGpus.values()]
    .filter((one) => one.share >= TOO_FEW)
    .sort((a, b) => b.share - a.share || a.width - b.width);
}

/** The whole of a class, cut wherever anything differs from the epoch before. */
export function stretches(before: PlanClass | null, after: PlanClass): Stretch[] {
  const old = before ? choices(before) : [];
  const found: Stretch[] = [];
  choices(after).forEach((then, epoch) => {
    const now = old[epoch] ?? [];
    const last = found.at(-1);
    if (last && words(last.before) === words(now) && words(last.after) === words(then)) {
      last.last = epoch + 1;
    } else {
      const changed = words(now) !== words(then);
      found.push({ first: epoch + 1, last: epoch + 1, before: now, after: then, changed });
    }
  });
  return found;
}

function gpusOf({ width, type }: Choice): string {
  return `${trimmed(width, 2)}×${type}`;
}

/** "16×A100", or "14×A100 (66 %) or 16×A100 (34 %)" where jobs of a class differ. */
export function words(found: readonly Choice[]): string {
  if (found.length === 1 && found[0]) return gpusOf(found[0]);
  return found.map((one) => `${gpusOf(one)} (${Math.round(one.share * 100)} %)`).join(" or ");
}

/** "2 → 4 ×T4", "2×T4 → 4×A100", "16×A100". */
export function changeWords({ before, after, changed }: Stretch): string {
  if (!changed || before.length === 0) return words(after);
  const [[was, ...wasOthers], [is, ...isOthers]] = [before, after];
  const single = wasOthers.length === 0 && isOthers.length === 0;
  if (single && was && was.type === is?.type) {
    return `${trimmed(was.width, 2)} → ${trimmed(is.width, 2)} ×${is.type}`;
  }
  return `${words(before)} → ${words(after)}`;
}

/** "all epochs", "epoch 1", "epochs 2–80". */
export function epochWords({ first, last }: Stretch, all: boolean): string {
  if (all) return "all epochs";
  return first === last ? `epoch ${first}` : `epochs ${first}–${last}`;
}

/** Whether a reader would see any difference. */
export function differs(change: ClassChange): boolean {
  if (!change.differs) return false;
  return stretches(change.unchanged, change.after).some((stretch) => stretch.changed);
}
