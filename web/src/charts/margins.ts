/** Room around a plot, as wide as the words of its axes, and no more ticks than have room. */
import type { Axis } from "./axis";
import { scaleOf, type Scale } from "./scale";
import type { Tick } from "./ticks";

export interface Margin {
  top: number;
  right: number;
  bottom: number;
  left: number;
}

export interface Fitted {
  sx: Scale;
  sy: Scale;
  margin: Margin;
}

export interface Drawn {
  x: Axis;
  y: Axis;
  xs: readonly number[];
  ys: readonly number[];
  width: number;
  height: number;
}

/** The width of a tick's words in pixels. */
export type Measure = (text: string) => number;

const TOP = 24;
const BOTTOM = 38;
const LEAST = { left: 26, right: 14 };
/** Between the words of the upright axis and the plot. */
export const BESIDE = 6;
/** From the plot down to the line on which the words of the other stand: clear of a zero beside it. */
export const BELOW = 19;
/** Between the words of two ticks, and between words and the edge. */
const APART = 8;
export const EDGE = 2;
const TICK_WIDTH = 75;
const TICK_HEIGHT = 45;

/** Both axes of a chart, with margins in which all of their words are to be read. */
export function fitted({ x, y, xs, ys, width, height }: Drawn, measure: Measure): Fitted {
  const up = Math.max(2, Math.floor((height - TOP - BOTTOM) / TICK_HEIGHT));
  const sy = scaleOf({ zero: !y.log, ...y }, ys, [height - BOTTOM, TOP], up);
  const words = Math.max(0, ...sy.ticks.map(({ text }) => measure(text)));
  const least = { left: Math.max(LEAST.left, words + BESIDE + EDGE), right: LEAST.right };
  const across = Math.max(2, Math.floor((width - least.left - least.right) / TICK_WIDTH));
  for (let count = across; count > 1; count -= 1) {
    const found = placed(x, xs, width, least, count, measure);
    if (fits(found.sx, measure)) return { ...found, sy };
  }
  const { sx, margin } = placed(x, xs, width, least, 1, measure);
  return { sx: Object.assign(sx, { ticks: sx.ticks.slice(0, 1) }), sy, margin };
}

/** An axis across, with room for half of its first and last words beyond its ends. */
function placed(
  x: Axis,
  xs: readonly number[],
  width: number,
  least: { left: number; right: number },
  count: number,
  measure: Measure,
): { sx: Scale; margin: Margin } {
  const at = (left: number, right: number) => scaleOf(x, xs, [left, width - right], count);
  const { ticks } = at(least.left, least.right);
  const half = (tick: Tick | undefined) => (tick ? measure(tick.text) / 2 + EDGE : 0);
  const left = Math.max(least.left, half(ticks[0]));
  const right = Math.max(least.right, half(ticks.at(-1)));
  return { sx: at(left, right), margin: { top: TOP, right, bottom: BOTTOM, left } };
}

function fits(scale: Scale, measure: Measure): boolean {
  return scale.ticks.every((tick, n) => {
    const next = scale.ticks[n + 1];
    if (!next) return true;
    const halves = (measure(tick.text) + measure(next.text)) / 2;
    return scale(next.value) - scale(tick.value) >= halves + APART;
  });
}
