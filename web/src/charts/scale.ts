/** Axes: from values to pixels. Where ticks go, and their words: `ticks.ts`. */
import { scaleLinear, scaleLog } from "d3-scale";

import { duration, figure, usd } from "../format";
import type { Axis, Unit } from "./axis";
import { ticksOf, type Tick } from "./ticks";

export interface Scale {
  (value: number): number;
  invert: (pixel: number) => number;
  ticks: Tick[];
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

export function scaleOf(
  axis: Axis,
  values: readonly number[],
  range: readonly [number, number],
  count: number,
): Scale {
  const [low, high] = domainOf(axis, values);
  const make = axis.log ? scaleLog : scaleLinear;
  const scale = make().domain([low, high]).range(range);
  return Object.assign((value: number) => scale(value), {
    invert: (pixel: number) => scale.invert(pixel),
    ticks: ticksOf(axis, low, high, count),
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
