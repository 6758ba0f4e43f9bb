/** What a chart shows, and the same as a table of figures. */

import type { Axis, Unit } from "./axis";

export type Point = readonly [x: number, y: number | null];

export interface Series {
  name: string;
  /** A CSS colour; see `colors.ts`. */
  color: string;
  points: readonly Point[];
  /** step: each value holds until the next x. band: filled down to zero. dots: no line. */
  kind?: "line" | "step" | "band" | "stepBand" | "dots";
  dashed?: boolean;
  /** Not in the legend. */
  quiet?: boolean;
  /** A dot at each point, also of a line: how large, and what to say of it. */
  dots?: readonly { radius: number; text: string }[];
}

/** One point with words beside it. */
export interface Mark {
  x: number;
  y: number;
  text: string;
  color: string;
}

/** A line across, with words at its end: a budget, a cap. */
export interface Level {
  y: number;
  text: string;
  color: string;
}

/** Something that happened at some x. */
export interface Moment {
  x: number;
  text: string;
  color: string;
}

export function csv(rows: readonly (readonly (string | number | null)[])[]): string {
  return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

function cell(value: string | number | null): string {
  if (value === null) return "";
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

type Row = (string | number | null)[];

/** A row for each point. Times are there twice: for programs, and for people. */
export function tableOf(series: readonly Series[], x: Axis, y: Axis): Row[] {
  const timed = x.unit === "time";
  const rows: Row[] = [["series", columnOf(x), ...(timed ? ["time (UTC)"] : []), columnOf(y)]];
  for (const { name, points } of series) {
    for (const [at, value] of points) {
      const readable = timed ? [new Date(at * 1000).toISOString()] : [];
      rows.push([name, at, ...readable, value]);
    }
  }
  return rows;
}

const UNITS: Partial<Record<Unit, string>> = {
  usd: "USD",
  seconds: "s",
  hours: "h",
  time: "Unix s",
};

/** What an axis has, with its unit: nobody sees the ticks in a file. */
export function columnOf({ label, unit = "number" }: Axis): string {
  const said = /^(?:(.+) in )?(USD.*)$/.exec(label);
  if (said) return `${said[1] ?? "amount"} (${said[2] ?? "USD"})`;
  const name = label || (unit === "time" ? "time" : "value");
  const short = UNITS[unit];
  return short === undefined ? name : `${name} (${short})`;
}

/** Index of the point of a series that is nearest to x; -1 if there is none. */
export function nearest(points: readonly Point[], x: number): number {
  let best = -1;
  let distance = Infinity;
  points.forEach(([at, value], index) => {
    const away = Math.abs(at - x);
    if (value !== null && away < distance) [best, distance] = [index, away];
  });
  return best;
}

/** Of a step: the last point at or before x; -1 if there is nothing at x. */
export function holding(points: readonly Point[], x: number): number {
  let found = -1;
  points.forEach(([at, value], index) => {
    if (at <= x) found = value === null ? -1 : index;
  });
  return found;
}
