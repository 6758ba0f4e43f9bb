// @vitest-environment node
import { describe, expect, test } from "vitest";

import cases from "../../tests/data/amounts.json";
import * as format from "./format";

const WORDED: Record<keyof typeof cases, (...given: number[]) => string> = {
  dollars: (amount = NaN) => format.usd(amount),
  rate: (amount = NaN) => format.usdPerHour(amount),
  duration: (seconds = NaN) => format.duration(seconds),
  percent: (part = NaN) => format.percent(part),
  days: (since = NaN, until = NaN) => format.days(since, until),
};

describe.each(Object.entries(WORDED))("%s, as in Python", (name, worded) => {
  const of = cases[name as keyof typeof cases] as [...number[], string][];
  test.each(of.map((one) => [one.slice(0, -1) as number[], one.at(-1) as string] as const))(
    "%j is %s",
    (given, text) => expect(worded(...given)).toBe(text),
  );
});

describe("money", () => {
  test.each([
    [42, "$42.00"],
    [1284.4, "$1,284.40"],
    [14.555_01, "$14.56"],
    [0.3125, "$0.3125"],
    [0.000_012_34, "$0.0000123"],
  ])("%d, when it is set, is %s to the last digit", (amount, text) => {
    const set = format.settable(amount);
    expect(format.usdExactly(set)).toBe(text);
    expect(Number(text.replaceAll(/[$,]/g, ""))).toBe(set);
  });
});

test("what is no number is a dash", () => {
  expect([format.usd(NaN), format.duration(Infinity)]).toEqual(["–", "–"]);
});

describe("figures have three digits that count", () => {
  test.each([
    [0, "0"],
    [0.00012, "1.2e-4"],
    [0.0123, "0.0123"],
    [4.5678, "4.57"],
    [10, "10"],
    [100, "100"],
    [250, "250"],
    [12_345, "12,345"],
    [NaN, "–"],
  ])("%d is %s", (value, text) => expect(format.figure(value)).toBe(text));
});

test("zeros are trimmed behind the point, never before it", () => {
  expect(format.trimmed(1200, 0)).toBe("1200");
  expect(format.trimmed(1.5, 3)).toBe("1.5");
  expect(format.trimmed(2, 2)).toBe("2");
});

test("changes have a sign; next to none is none", () => {
  expect(format.change(100, 112)).toBe("+12 %");
  expect(format.change(100, 97)).toBe("−3.0 %");
  expect(format.change(100, 100.01)).toBe("±0 %");
  expect(format.change(0, 5)).toBe("–");
});

test("GPUs, parts and counts read as people write them", () => {
  expect(format.gpus(4, "T4")).toBe("4×T4");
  expect(format.gpus(0, null)).toBe("–");
  expect(format.plural(1, "job")).toBe("1 job");
  expect(format.plural(2500, "node")).toBe("2,500 nodes");
});

test("what happened is so long ago, never in the future", () => {
  expect(format.ago(1000, 1000 + 185)).toBe("3.1 min ago");
  expect(format.ago(1000, 990)).toBe("just now");
});
