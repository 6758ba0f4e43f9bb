// @vitest-environment node
import { expect, test } from "vitest";

import type { Unit } from "./axis";
import { textsOf, ticksOf } from "./ticks";

const NOW = 1_795_000_000;
const UNITS: readonly Unit[] = ["number", "usd", "seconds", "hours", "time"];
/** Of every size that an axis can have, from millionths to billions. */
const SIZES = Array.from({ length: 61 }, (_, n) => 10 ** (n / 4 - 6));
const COUNTS = [1, 2, 3, 5, 8, 17];

function texts(unit: Unit, low: number, high: number, count: number, log = false): string[] {
  return ticksOf({ label: "", unit, log }, low, high, count).map(({ text }) => text);
}

test.each(UNITS)("no two ticks of an axis say the same, whatever its size: %s", (unit) => {
  for (const size of SIZES) {
    for (const count of COUNTS) {
      const from = unit === "time" ? NOW : 0;
      const spans = [
        [from, from + size],
        [from + size, from + 1.03 * size],
        [from + 0.37 * size, from + 1.41 * size],
      ] as const;
      for (const [low, high] of spans) {
        const found = texts(unit, low, high, count);
        expect(new Set(found).size, `${low} to ${high}: ${found.join(", ")}`).toBe(found.length);
      }
    }
  }
});

test.each(["number", "usd", "seconds"] as const)("nor of a logarithmic one: %s", (unit) => {
  for (const size of SIZES) {
    for (const ratio of [1.02, 1.3, 2, 7, 60, 5000]) {
      for (const count of COUNTS) {
        const found = texts(unit, size, size * ratio, count, true);
        expect(new Set(found).size, `${size} × ${ratio}: ${found.join(", ")}`).toBe(found.length);
      }
    }
  }
});

test.each(["number", "usd"] as const)("words put a tick where it is: %s", (unit) => {
  const suffixes: Record<string, number> = { n: 1e-9, µ: 1e-6, M: 1e6, G: 1e9, T: 1e12 };
  for (const size of SIZES) {
    const ticks = ticksOf({ label: "", unit }, 0.37 * size, 1.41 * size, 5);
    const step = (ticks[1]?.value ?? 0) - (ticks[0]?.value ?? 0);
    for (const { value, text } of ticks) {
      const [, digits = "", more = ""] = /^\$?([\d,.]+)(\D?)$/.exec(text) ?? [];
      const read = Number(digits.replaceAll(",", "")) * (suffixes[more] ?? 1);
      expect(Math.abs(read - value), `${value} as ${text}`).toBeLessThanOrEqual(step * 0.0501);
    }
  }
});

test("an axis of any size has a tick, and not many more than were asked for", () => {
  for (const size of SIZES) {
    for (const count of COUNTS.slice(1)) {
      const found = texts("usd", 0, size, count);
      expect(found.length, `${size}, ${count}`).toBeGreaterThanOrEqual(2);
      expect(found.length, `${size}, ${count}`).toBeLessThanOrEqual(2 * count + 1);
    }
  }
});

test("money that is less than a cent apart has as many digits as that takes", () => {
  expect(texts("usd", 0, 0.022, 4)).toEqual(["$0", "$0.005", "$0.010", "$0.015", "$0.020"]);
  expect(texts("usd", 0, 0.1, 5)).toEqual(["$0", "$0.02", "$0.04", "$0.06", "$0.08", "$0.10"]);
  expect(texts("usd", 0, 6, 3)).toEqual(["$0", "$2", "$4", "$6"]);
  expect(texts("usd", 0, 5, 10).slice(0, 3)).toEqual(["$0", "$0.50", "$1.00"]);
});

test("what would be wide is written in millions or millionths", () => {
  expect(texts("number", 0, 3e6, 3)).toEqual(["0", "1M", "2M", "3M"]);
  expect(texts("number", 0, 3e-5, 3)).toEqual(["0", "10µ", "20µ", "30µ"]);
});

test("durations are in the largest unit that they fill", () => {
  expect(textsOf([0.2, 0.4, 90, 5400, 129_600], "seconds")).toEqual([
    "0.2 s",
    "0.4 s",
    "1.5 min",
    "1.5 h",
    "1.5 d",
  ]);
});

test("times of more than a day have their day", () => {
  const found = texts("time", NOW, NOW + 1.5 * 86_400, 12);
  expect(found.every((text) => /\D{3}/.test(text))).toBe(true);
  expect(texts("time", NOW, NOW + 7200, 4).every((text) => /^\d\d:\d\d$/.test(text))).toBe(true);
});

test("a large tick has no more digits than its neighbours ask for, where ticks are by ratios", () => {
  const found = textsOf([3600, 7200, 14_400, 72_000, 144_000, 720_000], "seconds");
  expect(found).toEqual(["1 h", "2 h", "4 h", "20 h", "1.7 d", "8.3 d"]);
});
