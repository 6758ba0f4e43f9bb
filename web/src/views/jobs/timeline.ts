/** A job's history as lines to draw. */
import type { JobPoint, JobRun } from "../../api/types";
import { colorAt } from "../../charts/colors";
import type { Moment, Point, Series } from "../../charts/data";

/** GPUs that it held, a line for each type; zero where it held none. */
export function widthSeries(runs: readonly JobRun[], since: number, until: number): Series[] {
  const types = [...new Set(runs.map((run) => run.gpu_type))];
  return types.map((type, index) => ({
    name: type,
    color: colorAt(index),
    kind: "stepBand",
    points: steps(
      runs.filter((run) => run.gpu_type === type),
      since,
      until,
    ),
  }));
}

function steps(runs: readonly JobRun[], since: number, until: number): Point[] {
  const points: Point[] = [];
  if (runs[0] && runs[0].since > since) points.push([since, 0]);
  runs.forEach((run, index) => {
    const end = run.until ?? until;
    const next = runs[index + 1];
    points.push([run.since, run.width]);
    if (!next || next.since > end) points.push([end, run.until === null ? run.width : 0]);
  });
  const last = points.at(-1);
  if (last && last[0] < until) points.push([until, last[1]]);
  return points;
}

/** When it got other GPUs than it had. */
export function rescaleMoments(runs: readonly JobRun[]): Moment[] {
  return runs.slice(1).map((run, index) => {
    const before = runs[index];
    const same = before?.width === run.width && before.gpu_type === run.gpu_type;
    const from = before ? `${before.width}×${before.gpu_type} → ` : "";
    const text = same
      ? `started again on ${run.width}×${run.gpu_type}`
      : `${from}${run.width}×${run.gpu_type}`;
    return { x: run.since, text, color: "var(--faint)" };
  });
}

/** What it had cost by when. */
export function costPoints(runs: readonly JobRun[], since: number, until: number): Point[] {
  const points: Point[] = [[since, 0]];
  let cost = 0;
  for (const run of runs) {
    points.push([run.since, cost]);
    cost += run.cost_usd;
    points.push([run.until ?? until, cost]);
  }
  const last = points.at(-1);
  if (last && last[0] < until) points.push([until, cost]);
  return points;
}

export type Over = "time" | "step";

export function hasSteps(points: readonly JobPoint[]): boolean {
  return points.filter((point) => point.step !== null).length > 1;
}

/** What it reported, where it did. A run that begins again repeats steps: the line is cut there. */
export function reported(
  points: readonly JobPoint[],
  value: (point: JobPoint) => number | null,
  over: Over,
): Point[] {
  const line: Point[] = [];
  let before = -Infinity;
  for (const point of points) {
    const x = over === "time" ? point.at : point.step;
    const y = value(point);
    if (x === null || y === null) continue;
    if (x < before) line.push([x, null]);
    line.push([x, y]);
    before = x;
  }
  return line;
}

/** A rate is the average since the point before: it is drawn over that stretch. */
export function rateSteps(points: readonly JobPoint[], over: Over): Point[] {
  const line: Point[] = [];
  points.forEach((point, index) => {
    const before = points[index - 1];
    if (point.rate === null || !before) return;
    const [from, to] =
      over === "time" ? [before.at, point.at] : [before.step ?? NaN, point.step ?? NaN];
    if (!(from < to)) return;
    const last = line.at(-1);
    if (last?.[0] === from && last[1] === null) line.pop();
    line.push([from, point.rate], [to, null]);
  });
  const last = line.pop();
  const held = line.at(-1);
  if (last && held) line.push([last[0], held[1]]); // so that the last stretch has its length
  return line;
}

const PARTS: readonly (readonly [key: string, words: string])[] = [
  ["stop", "stopping the run before"],
  ["save", "saving its checkpoint"],
  ["start", "starting processes"],
  ["load", "loading the checkpoint"],
  ["first_step", "the first step"],
  ["other", "anything else"],
];

export interface RescalePart {
  key: string;
  words: string;
  seconds: number;
  /** Of the whole. */
  share: number;
}

/** What the last rescaling took, in the order in which it happened. */
export function rescaleParts(rescale: Readonly<Record<string, number>>): RescalePart[] {
  const whole = rescale.total ?? 0;
  return PARTS.flatMap(([key, words]) => {
    const seconds = rescale[key];
    if (seconds === undefined) return [];
    return [{ key, words, seconds, share: whole > 0 ? Math.min(1, seconds / whole) : 0 }];
  });
}
