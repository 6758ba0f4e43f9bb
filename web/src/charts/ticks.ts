/** One rule for the ticks of every axis: round values, and words of which no two are equal. */
import { scaleLinear, scaleLog } from "d3-scale";

import type { Axis, Unit } from "./axis";

export interface Tick {
  value: number;
  text: string;
}

const DURATIONS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 14_400, 21_600, 43_200,
  86_400, 172_800, 604_800, 1_209_600, 2_592_000,
];
const DAY_S = 86_400;
const MOST_DIGITS = 12;
/** A tick's words may be off its place by this part of the way to the next: nobody sees that. */
const OFF = 0.05;

/** About `count` ticks from `low` to `high`, each with words of its own. */
export function ticksOf(axis: Axis, low: number, high: number, count: number): Tick[] {
  const values = valuesOf(axis, low, high, Math.max(count, 1));
  const texts = textsOf(values, axis.unit, high - low);
  // Where no digits tell two of them apart, the second says nothing.
  return values
    .map((value, n) => ({ value, text: texts[n] ?? "" }))
    .filter(({ text }, n) => texts.indexOf(text) === n);
}

function valuesOf(axis: Axis, low: number, high: number, count: number): number[] {
  const plain = scaleLinear().domain([low, high]).ticks(count);
  if (axis.log) return logValues(axis, low, high, count, plain);
  if (axis.whole) return plain.filter(Number.isInteger);
  if (axis.unit !== "seconds" && axis.unit !== "time") return plain;
  const wanted = ((high - low) / count) * 0.9;
  const step = wanted > 0.5 ? DURATIONS.find((each) => each >= wanted) : undefined;
  return step ? everyStep(axis.unit, low, high, step) : plain;
}

function everyStep(unit: Unit, low: number, high: number, step: number): number[] {
  // Days begin at midnight where the reader is.
  const shift = unit === "time" ? new Date(low * 1000).getTimezoneOffset() * 60 : 0;
  const found: number[] = [];
  for (let at = Math.ceil((low - shift) / step) * step + shift; at <= high; at += step) {
    found.push(at);
  }
  return found;
}

/** Round values as far apart as they can be told apart; times are round in their own way. */
function logValues(
  axis: Axis,
  low: number,
  high: number,
  count: number,
  plain: readonly number[],
): number[] {
  const round = scaleLog().domain([low, high]).ticks(count);
  const times = axis.unit === "seconds" ? DURATIONS : [];
  const inside = times.filter((each) => each >= low && each <= high);
  const best = [inside, round, plain].find((each) => each.length >= 2) ?? round;
  const apart = (high / low) ** (0.6 / count);
  const found: number[] = [];
  for (const each of best) {
    const last = found.at(-1);
    if (last === undefined || each / last >= apart) found.push(each);
  }
  return found;
}

/** Words for all ticks of an axis, in the shortest way that tells each from all others. */
export function textsOf(values: readonly number[], unit: Unit = "number", span = 1): string[] {
  const gaps = values.slice(1).map((value, n) => Math.abs(value - (values[n] ?? value)));
  const step = gaps.length > 0 ? Math.min(...gaps) : Math.abs(span);
  // On a scale by ratios large ticks are far apart: none needs more digits than its neighbours ask.
  const steps = values.map((_, n) => Math.min(gaps[n - 1] ?? Infinity, gaps[n] ?? Infinity));
  const near = gaps.length > 0 ? steps : values.map(() => step);
  const ways = unit === "time" ? timeWays(step) : figureWays(values, unit, near);
  let texts: string[] = [];
  for (const way of ways) {
    texts = values.map(way);
    if (new Set(texts).size === texts.length) return texts;
  }
  return texts;
}

type Way = (value: number) => string;

/** From the fewest digits that put every tick where it is. */
function figureWays(
  values: readonly number[],
  unit: Exclude<Unit, "time">,
  steps: readonly number[],
): Way[] {
  const write = WRITERS[unit];
  const ways: Way[] = [];
  for (let digits = 0; digits <= MOST_DIGITS; digits += 1) {
    const enough = values.every((value, n) => {
      const size = write.size(value, values);
      const kept = Number((value / size).toFixed(digits)) * size;
      return Math.abs(kept - value) <= OFF * (steps[n] ?? 0);
    });
    if (enough) ways.push((value) => write.text(value, digits, write.size(value, values)));
  }
  return ways.length > 0 ? ways : [String];
}

interface Writer {
  /** The unit in which a value is written: 60 for minutes, a thousand for k. */
  size: (value: number, all: readonly number[]) => number;
  text: (value: number, digits: number, size: number) => string;
}

const SECONDS: Writer = {
  size: (value) => durationUnit(value)[0],
  text: (value, digits, size) => `${plainly(value / size, 0, digits)} ${durationUnit(value)[1]}`,
};
const WRITERS: Record<Exclude<Unit, "time">, Writer> = {
  number: {
    size: (_, all) => thousands(all),
    text: (value, digits, size) =>
      value === 0 ? "0" : plainly(value / size, 0, digits) + suffix(size),
  },
  usd: {
    size: (_, all) => thousands(all),
    text: (value, digits, size) => {
      if (value === 0) return "$0";
      const cents = digits > 0 && size === 1 ? Math.max(2, digits) : digits;
      const sign = value < 0 ? "−" : "";
      return `${sign}$${plainly(Math.abs(value) / size, size === 1 ? cents : 0, cents)}${suffix(size)}`;
    },
  },
  seconds: SECONDS,
  hours: {
    size: (value) => durationUnit(value * 3600)[0] / 3600,
    text: (value, digits, size) => SECONDS.text(value * 3600, digits, size * 3600),
  },
};

const FIGURES = new Map<string, Intl.NumberFormat>();

function plainly(value: number, least: number, most: number): string {
  const kind = `${least} ${most}`;
  const digits = { minimumFractionDigits: least, maximumFractionDigits: most };
  const format = FIGURES.get(kind) ?? new Intl.NumberFormat("en-US", digits);
  FIGURES.set(kind, format); // made once: an axis asks for many
  return format.format(value).replace("-", "−");
}

const SUFFIXES: readonly (readonly [number, string])[] = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1, ""],
  [1e-6, "µ"],
  [1e-9, "n"],
];

/** Of all values of an axis together: ticks in one unit can be compared. */
function thousands(all: readonly number[]): number {
  const most = Math.max(...all.map(Math.abs));
  if (most === 0 || !Number.isFinite(most)) return 1;
  if (most < 1e6 && most >= 1e-4) return 1;
  return SUFFIXES.find(([size]) => most >= size)?.[0] ?? 1e-9;
}

function suffix(size: number): string {
  return SUFFIXES.find(([each]) => each === size)?.[1] ?? "";
}

function durationUnit(seconds: number): readonly [number, string] {
  const size = Math.abs(seconds) * (1 + 1e-9);
  if (size < 60) return [1, "s"];
  if (size < 3600) return [60, "min"];
  return size < DAY_S ? [3600, "h"] : [DAY_S, "d"];
}

const DAY = { month: "short", day: "numeric" } as const;
const MINUTE = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
const SECOND = { ...MINUTE, second: "2-digit" } as const;
const written = (kind: Intl.DateTimeFormatOptions): Way => {
  const format = new Intl.DateTimeFormat([], kind);
  return (value) => format.format(value * 1000);
};
const DATES = [written(DAY), written({ ...DAY, year: "numeric" })];
const MINUTES = [written(MINUTE), written({ ...DAY, ...MINUTE })];
const SECONDS_TOO = [written(SECOND), written({ ...DAY, ...SECOND })];
const PARTS = written({ ...SECOND, fractionalSecondDigits: 3 });

/** Dates where ticks are days apart; else the time, with its day where there are several. */
function timeWays(step: number): Way[] {
  if (step >= 23 * 3600) return DATES; // 23 hours: a day on which clocks are set
  if (step < 1) return [PARTS];
  return step % 60 === 0 ? [...MINUTES, ...SECONDS_TOO] : SECONDS_TOO;
}
