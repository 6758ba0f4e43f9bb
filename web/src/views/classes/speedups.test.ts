// @vitest-environment node
import { expect, test } from "vitest";

import { onType } from "./sample";
import { curvesOf, failedWords, marksOf, perfect, samplesOf, topOf } from "./speedups";

const sample = (width: number, reports: number, across_nodes = false) => ({
  width,
  across_nodes,
  rate: 1,
  seconds: 60,
  reports,
  speedup: width * 0.9,
  measured_speedup: null,
});

test("the curve is a fit as far as jobs went, and believed beyond", () => {
  const series = curvesOf(onType("T4", { tried: 2 }));
  expect(series.slice(1).map(({ name, points }) => [name, points.map(([x]) => x)])).toEqual([
    ["fit", [1, 2]],
    ["believed, not tried", [2, 3, 4]],
  ]);
});

test("a type that no job ran on is all belief, one that was tried to its end all fit", () => {
  expect(curvesOf(onType("T4", { tried: 0 })).map(({ name }) => name)).toEqual([
    "perfect scaling",
    "believed, not tried",
  ]);
  expect(curvesOf(onType("T4", { tried: 4 })).map(({ name }) => name)).toEqual([
    "perfect scaling",
    "fit",
  ]);
});

test("perfect scaling starts at the curve's first point and is cut off at the upper end", () => {
  const points = perfect(
    [
      [2, 10],
      [4, 18],
      [64, 40],
    ],
    50,
  );
  expect(points).toEqual([
    [2, 10],
    [4, 20],
    [10, 50],
  ]);
  expect(perfect([], 50)).toEqual([]);
});

test("samples are dots by where they were measured, the larger the more reports", () => {
  const samples = [sample(2, 100), sample(1, 4), sample(8, 100, true)];
  const [one, several] = samplesOf(onType("T4", { samples }));
  expect(one?.points.map(([x]) => x)).toEqual([1, 2]);
  expect(one?.dots?.map(({ radius }) => radius)).toEqual([3 + 6 * 0.2, 9]);
  expect(one?.dots?.[0]?.text).toBe("1 GPU: 4 reports over 60 s");
  expect(several?.points).toEqual([[8, 7.2]]);
  expect(samplesOf(onType("T4"))).toEqual([]);
});

test("the axis has room above the highest of curve and samples", () => {
  expect(topOf(onType("T4", { samples: [sample(10, 1)] }))).toBeCloseTo(9 * 1.15);
});

test("planned widths lie on the curve, and neighbours share their words", () => {
  const widths = Array.from({ length: 40 }, (_, i) => i + 1);
  const speedup = widths.map((width) => width / 2);
  const type = onType("T4", { curve: { widths, speedup, rate: speedup } });
  expect(marksOf(type, [2, 10, 11]).map(({ x, y, text }) => [x, y, text])).toEqual([
    [2, 1, "planned: 2"],
    [10, 5, ""],
    [11, 5.5, "planned: 10, 11"],
  ]);
  expect(marksOf(type, [64])).toEqual([]);
});

test("a width that failed is said with its reason, and whether it is tried again", () => {
  const one = {
    width: 2,
    across_nodes: false,
    times: 3,
    reason: "exit code 1",
    said: "CUDA out of memory",
    at: 0,
    job: "1",
    again_at: null,
  };
  expect(failedWords("A100", one)).toBe(
    "2×A100 failed 3 times: exit code 1: CUDA out of memory; not used",
  );
  expect(failedWords("A100", { ...one, times: 1, again_at: 60, across_nodes: true })).toBe(
    "2×A100 across nodes failed once: exit code 1: CUDA out of memory; not used for now",
  );
});
