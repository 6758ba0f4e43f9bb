// @vitest-environment node
import { expect, test } from "vitest";

import { colorOfJob } from "./colors";
import { columnOf, csv, holding, nearest, tableOf, type Point } from "./data";
import { fileName } from "./export";
import type { Axis } from "./axis";

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
  expect(tableOf(series, { label: "step" }, { label: "GPUs" })).toEqual([
    ["series", "step", "GPUs"],
    ["a", 1, 2],
    ["b", 1, null],
  ]);
});

test("times are in a file for programs and for people", () => {
  const series = [{ name: "a", color: "", points: [[1_700_000_000, 2]] as Point[] }];
  expect(tableOf(series, { label: "", unit: "time" }, { label: "USD per hour" })).toEqual([
    ["series", "time (Unix s)", "time (UTC)", "amount (USD per hour)"],
    ["a", 1_700_000_000, "2023-11-14T22:13:20.000Z", 2],
  ]);
});

test("a column of a file has a name and a unit, whatever the axis says", () => {
  const names: [Axis, string][] = [
    [{ label: "average JCT", unit: "seconds" }, "average JCT (s)"],
    [{ label: "budget in USD per hour", unit: "usd" }, "budget (USD per hour)"],
    [{ label: "cost of these epochs", unit: "usd" }, "cost of these epochs (USD)"],
    [{ label: "USD", unit: "usd" }, "amount (USD)"],
    [{ label: "units per second" }, "units per second"],
    [{ label: "" }, "value"],
  ];
  for (const [axis, name] of names) expect(columnOf(axis)).toBe(name);
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
