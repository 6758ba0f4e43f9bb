// @vitest-environment node
import { expect, test } from "vitest";

import { colorOfJob } from "./colors";
import { csv, holding, nearest, tableOf, type Point } from "./data";
import { fileName } from "./export";

test("CSV quotes what would break it, and leaves empty what is not known", () => {
  const text = csv([
    ["name", "value"],
    ['say "hi", twice', 1.5],
    ["two\nlines", null],
  ]);
  expect(text).toBe('name,value\r\n"say ""hi"", twice",1.5\r\n"two\nlines",\r\n');
});

test("a chart's table has a row for each point of each series", () => {
  const series = [
    { name: "a", color: "", points: [[1, 2]] as Point[] },
    { name: "b", color: "", points: [[1, null]] as Point[] },
  ];
  expect(tableOf(series, "time", "GPUs")).toEqual([
    ["series", "time", "GPUs"],
    ["a", 1, 2],
    ["b", 1, null],
  ]);
});

const POINTS: Point[] = [
  [0, 1],
  [10, 2],
  [20, null],
];

test("the nearest point is one with a value", () => {
  expect(nearest(POINTS, 6)).toBe(1);
  expect(nearest(POINTS, 19)).toBe(1);
  expect(nearest([], 5)).toBe(-1);
});

test("a step holds until the next, also if the next is unknown", () => {
  expect(holding(POINTS, 9.9)).toBe(0);
  expect(holding(POINTS, 10)).toBe(1);
  expect(holding(POINTS, 25)).toBe(-1);
  expect(holding(POINTS, -1)).toBe(-1);
});

test("files are named after the chart", () => {
  expect(fileName("A100 GPUs: rented, used", "csv")).toBe("boa-a100-gpus-rented-used.csv");
  expect(fileName("→", "svg")).toBe("boa-chart.svg");
});

test("a job always has the same colour, and its neighbours have others", () => {
  const near = [1, 2, 3, 8, 13].map((away) => colorOfJob(String(50 + away)));
  expect(colorOfJob("50")).toBe(colorOfJob("50"));
  expect(new Set([...near, colorOfJob("50")]).size).toBe(6);
  expect(colorOfJob("not a number")).toMatch(/^hsl\(0 /);
});
