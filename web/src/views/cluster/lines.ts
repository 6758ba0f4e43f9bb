/** A history as lines over time. */
import type { History } from "../../api/types";
import type { Point, Series } from "../../charts/data";

/** Each number holds for its stretch; the last one until the end. */
export function steps(history: History, values: readonly (number | null)[]): Point[] {
  const points = values.map((value, i): Point => [history.since + i * history.step_s, value]);
  const last = values.at(-1);
  if (last !== undefined) points.push([history.until, last]);
  return points;
}

export function demandOf(history: History, type: string): Series[] {
  const found = history.gpus[type];
  if (!found) return [];
  return [
    {
      name: "rented",
      color: "var(--c3)",
      points: steps(history, found.rented),
      kind: "stepBand",
    },
    { name: "used", color: "var(--c1)", points: steps(history, found.used), kind: "stepBand" },
    {
      name: "wanted",
      color: "var(--c2)",
      points: steps(history, found.wanted),
      kind: "step",
      dashed: true,
    },
  ];
}

export function jobsOf(history: History): Series[] {
  const active = steps(history, history.active_jobs);
  const waiting = steps(history, history.waiting_jobs);
  return [
    { name: "active", color: "var(--c1)", points: active, kind: "stepBand" },
    { name: "of these waiting", color: "var(--c2)", points: waiting, kind: "step" },
  ];
}

/** Types that were rented, or that some job wanted. */
export function shownTypes(history: History): string[] {
  const some = (value: number | null) => value !== null && value > 0;
  return Object.entries(history.gpus)
    .filter(([, found]) => found.rented.some(some) || found.wanted.some(some))
    .map(([type]) => type);
}
