// @vitest-environment node
import { afterEach, expect, test, vi } from "vitest";

import type { Axis } from "./axis";
import { scaleOf } from "./scale";

const RANGE = [0, 400] as const;

function ticks(axis: Partial<Axis>, values: number[], count = 5) {
  return scaleOf({ label: "", ...axis }, values, RANGE, count).ticks;
}

afterEach(() => void vi.restoreAllMocks());

test("an axis that begins at zero has room above the highest value", () => {
  const scale = scaleOf({ label: "", zero: true }, [3, 10], RANGE, 5);
  expect(scale(0)).toBe(0);
  expect(scale(10)).toBeLessThan(400);
  expect(scale(10)).toBeGreaterThan(350);
});

test("no values at all, or one only, still make an axis", () => {
  expect(scaleOf({ label: "" }, [], RANGE, 5)(0.5)).toBe(200);
  const single = scaleOf({ label: "" }, [7, NaN], RANGE, 5);
  expect(single(7)).toBe(200);
  expect(scaleOf({ label: "", zero: true }, [0], RANGE, 5)(1)).toBe(400);
});

test("fixed ends are kept whatever the values", () => {
  const scale = scaleOf({ label: "", domain: [10, 20] }, [0, 100], RANGE, 5);
  expect([scale(10), scale(20)]).toEqual([0, 400]);
  expect(scale.invert(200)).toBe(15);
});

test("a logarithmic axis leaves out what is not above zero", () => {
  const scale = scaleOf({ label: "", log: true }, [0, -5, 1, 100], RANGE, 4);
  expect(scale(10)).toBeCloseTo(200);
  expect(scale.ticks.length).toBeGreaterThan(1);
  expect(scale.ticks.every(({ value }) => value > 0)).toBe(true);
});

test("durations have ticks at round durations", () => {
  expect(ticks({ unit: "seconds" }, [0, 3600], 4).map(({ text }) => text)).toEqual([
    "0 s",
    "15 min",
    "30 min",
    "45 min",
    "1 h",
  ]);
});

test("whole numbers only, where halves mean nothing", () => {
  const found = ticks({ whole: true }, [1, 3], 10).map(({ value }) => value);
  expect(found).toEqual([1, 2, 3]);
});

test("times between minutes are narrow enough to stand beside an axis", () => {
  const texts = ticks({ unit: "seconds" }, [610, 660]).map(({ text }) => text);
  expect(texts).toContain("10.5 min");
  expect(texts.filter((text) => text.endsWith(" s"))).toEqual([]);
});

test.each([0, -120, 330])("days begin at midnight where the reader is, %d min from UTC", (away) => {
  vi.spyOn(Date.prototype, "getTimezoneOffset").mockReturnValue(away);
  const day = 86_400;
  const found = ticks({ unit: "time" }, [10 * day + 5000, 13 * day + 5000], 3);
  const midnights = found.map(({ value }) => (value - away * 60) % day);
  expect(found).toHaveLength(3);
  expect(midnights).toEqual([0, 0, 0]);
});

test("money has cents only where the axis is short", () => {
  expect(ticks({ unit: "usd", zero: true }, [0, 40]).at(-1)?.text).toBe("$40");
  expect(ticks({ unit: "usd", zero: true }, [0, 1]).at(-1)?.text).toBe("$1.00");
  for (const most of [0.0036, 0.02, 0.3, 7]) {
    const texts = ticks({ unit: "usd", zero: true }, [0, most]).map(({ text }) => text);
    expect(new Set(texts).size, texts.join()).toBe(texts.length);
  }
});
