/** Why a width: what each one more would save, and cost. */
import type { EpochChoice, Why, WidthChoice } from "../../api/types";
import { percent } from "../../format";
import { TOO_FEW } from "./model";

/** A step from one sensible width to the next: what it saves per dollar. */
export interface Step {
  from: number;
  to: number;
  savesS: number;
  extraUsd: number;
  secondsPerUsd: number;
}

/**
 * Widths that are best at some exchange rate of time for money, by rising cost. Any other one is
 * slower and dearer than a mix of two of these, so nobody would choose it.
 */
export function sensible(choices: readonly WidthChoice[]): WidthChoice[] {
  const cheapFirst = [...choices].sort((a, b) => a.cost_usd - b.cost_usd || a.time_s - b.time_s);
  const found: WidthChoice[] = [];
  for (const one of cheapFirst) {
    const last = found.at(-1);
    if (last && one.time_s >= last.time_s) continue;
    while (found.length >= 2 && bends(found.at(-2), found.at(-1), one)) found.pop();
    found.push(one);
  }
  return found;
}

/** Whether the middle one lies on or above the line between the other two. */
function bends(a?: WidthChoice, b?: WidthChoice, c?: WidthChoice): boolean {
  if (!a || !b || !c) return false;
  const whole = (a.time_s - c.time_s) * (b.cost_usd - a.cost_usd);
  const part = (a.time_s - b.time_s) * (c.cost_usd - a.cost_usd);
  return part <= whole;
}

/** From each sensible width to the next dearer one. */
export function stepsOf(choices: readonly WidthChoice[]): Step[] {
  const found = sensible(choices);
  return found.slice(1).map((one, index) => {
    const before = found[index] ?? one;
    const savesS = before.time_s - one.time_s;
    const extraUsd = one.cost_usd - before.cost_usd;
    return {
      from: before.width,
      to: one.width,
      savesS,
      extraUsd,
      secondsPerUsd: savesS / extraUsd,
    };
  });
}

/** "All epochs", "Epoch 1", "Epochs 2–80": as the service's own words have it. */
export function epochsOf({ first_epoch, last_epoch }: EpochChoice, epochs: number): string {
  if (last_epoch - first_epoch + 1 === epochs) return epochs > 1 ? "All epochs" : "The job";
  if (first_epoch === last_epoch) return `Epoch ${first_epoch + 1}`;
  return `Epochs ${first_epoch + 1}–${last_epoch + 1}`;
}

export interface StretchOf {
  key: string;
  /** The service's sentence on it. */
  words: string;
  /** "Epochs 2–80": for titles of charts. */
  title: string;
  epoch: EpochChoice;
}

/** In the order of the service's words, which has one sentence for each. */
export function stretchesOf(why: Why): StretchOf[] {
  const found: StretchOf[] = [];
  const several = why.variants.filter((variant) => variant.share >= TOO_FEW).length > 1;
  let sentence = 0;
  why.variants.forEach((variant, index) => {
    const epochs = Math.max(0, ...variant.epochs.map((epoch) => epoch.last_epoch + 1));
    const share = several ? ` (${percent(variant.share)} of the jobs)` : "";
    for (const epoch of variant.epochs) {
      const title = `${epochsOf(epoch, epochs)}${share}`;
      const words = why.words[sentence++] ?? title;
      if (variant.share < TOO_FEW) continue;
      found.push({ key: `${index} ${epoch.first_epoch}`, words, title, epoch });
    }
  });
  return found;
}
