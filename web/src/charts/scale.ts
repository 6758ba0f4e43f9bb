/** Axes: from values to pixels, and where the ticks go. */
import { scaleLinear, scaleLog } from "d3-scale";

import { duration, figure, trimmed, usd } from "../format";

export type Unit = "number" | "usd" | "seconds" | "time" | "hours";

export interface Axis {
  label: string;
  unit?: Unit;
  log?: boolean;
  /** Begin at zero. Default for y. */
  zero?: boolean;
  /** Ticks at whole numbers only: half a GPU means nothing. */
  whole?: boolean;
  /** Fixed ends, instead of those of the data. */
  domain?: readonly [number, number];
}

export interface Scale {
  (value: number): number;
  invert: (pixel: number) => number;
  ticks: { value: number; text: string }[];
}

export function shown(value: number, unit: Unit = "number"): string {
  switch (unit) {
    case "usd":
      return usd(value);
    case "seconds":
      return duration(value);
    case "hours":
      return duration(value * 3600);
    case "time":
      return new Date(value * 1000).toLocaleString([], {
        month: "short",
        day: "numeric",
        hour: "2-digit",
        minute: "2-digit",
        hour12: false,
      });
    case "number":
      return figure(value);
  }
}

const DURATIONS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 14_400, 21_600, 43_200,
  86_400, 172_800, 604_800, 1_209_600, 2_592_000,
];

export function scaleOf(
  axis: Axis,
  values: readonly number[],
  range: readonly [number, number],
  count: number,
): Scale {
  const [low, high] = domainOf(axis, values);
  const make = axis.log ? scaleLog : scaleLinear;
  const scale = make().domain([low, high]).range(range);
  const found = ticksOf(axis, low, high, count, scale.ticks(count));
  const step = Math.min(...found.slice(1).map((value, n) => value - (found[n] ?? value)));
  return Object.assign((value: number) => scale(value), {
    invert: (pixel: number) => scale.invert(pixel),
    ticks: found.map((value) => ({ value, text: tickText(value, axis, high - low, step) })),
  });
}

function domainOf(axis: Axis, values: readonly number[]): [number, number] {
  if (axis.domain) return [axis.domain[0], axis.domain[1]];
  const finite = values.filter((value) => Number.isFinite(value) && (!axis.log || value > 0));
  if (finite.length === 0) return axis.log ? [1, 10] : [0, 1];
  let low = finite.reduce((a, b) => Math.min(a, b));
  let high = finite.reduce((a, b) => Math.max(a, b));
  if (axis.log) {
    const room = low === high ? 2 : (high / low) ** 0.04;
    return [low / room, high * room];
  }
  if (axis.zero) {
    low = Math.min(0, low);
    high = high === 0 ? 1 : high * 1.06; // so that no line runs along the upper edge
  }
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

function ticksOf(axis: Axis, low: number, high: number, count: number, plain: number[]): number[] {
  if (axis.log) return logTicks(axis, low, high, count, plain);
  if (axis.whole) return plain.filter(Number.isInteger);
  if (axis.unit !== "seconds" && axis.unit !== "time") return plain;
  const wanted = (high - low) / Math.max(count, 1);
  const step = DURATIONS.find((each) => each >= wanted * 0.9);
  if (!step) return plain;
  // Days begin at midnight where the reader is.
  const shift = axis.unit === "time" ? new Date(low * 1000).getTimezoneOffset() * 60 : 0;
  const found: number[] = [];
  for (let at = Math.ceil((low - shift) / step) * step + shift; at <= high; at += step) {
    found.push(at);
  }
  return found;
}

/** Round values as far apart as they can be told apart; times are round in their own way. */
function logTicks(
  axis: Axis,
  low: number,
  high: number,
  count: number,
  plain: readonly number[],
): number[] {
  const times = axis.unit === "seconds" ? DURATIONS : [];
  const inside = times.filter((each) => each >= low && each <= high);
  const apart = (high / low) ** (0.6 / Math.max(count, 1));
  const found: number[] = [];
  for (const each of inside.length >= 2 ? inside : plain) {
    const last = found.at(-1);
    if (last === undefined || each / last >= apart) found.push(each);
  }
  return found;
}

/** Digits after the point that tell dollars apart that are `step` apart; whole cents at least. */
function centsFor(step: number): number {
  return Number.isFinite(step) ? Math.max(2, Math.ceil(-Math.log10(step) - 1e-9)) : 2;
}

function tickText(value: number, axis: Axis, span: number, step: number): string {
  if (axis.unit === "usd") return usd(value, span >= 8 || value === 0 ? 0 : centsFor(step));
  if (axis.unit === "seconds" && value >= 60 && value < 86_400) {
    // Narrow enough to stand beside an axis.
    return value < 3600 ? `${trimmed(value / 60, 2)} min` : `${trimmed(value / 3600, 2)} h`;
  }
  if (axis.unit !== "time") return shown(value, axis.unit);
  const date = new Date(value * 1000);
  if (span > 2 * 86_400) return date.toLocaleDateString([], { month: "short", day: "numeric" });
  const second = span < 480 ? ({ second: "2-digit" } as const) : {};
  return date.toLocaleTimeString([], {
    hour: "2-digit",
    minute: "2-digit",
    hour12: false,
    ...second,
  });
}
