import { describe, expect, it } from "vitest";

import {
  amount,
  amountProblem,
  budgetAt,
  inSeconds,
  roundedUp,
  scaleFor,
  stepOf,
  STEPS,
} from "./scale";

describe("the slider's scale", () => {
  it("reaches a little beyond the cheapest and the fastest budget", () => {
    const scale = scaleFor(10, 80, 30);
    expect(budgetAt(scale, 0)).toBeLessThan(10);
    expect(budgetAt(scale, STEPS)).toBeGreaterThan(80);
  });

  it("lets in a budget that lies outside of what is worth having", () => {
    expect(stepOf(scaleFor(10, 80, 300), 300)).toBeLessThan(STEPS);
    expect(stepOf(scaleFor(10, 80, 2), 2)).toBeGreaterThan(0);
  });

  it("has even ratios for even steps", () => {
    const scale = { low: 1, high: 10_000 };
    expect(budgetAt(scale, 250)).toBe(10);
    expect(budgetAt(scale, 500)).toBe(100);
  });

  it("finds every step again from its budget", () => {
    const scale = scaleFor(10.2, 82.7, 30);
    for (const step of [0, 1, 333, 500, 999, STEPS]) {
      expect(stepOf(scale, budgetAt(scale, step))).toBe(step);
    }
  });

  it("stays within its ends whatever it is given", () => {
    const scale = scaleFor(10, 80);
    expect([stepOf(scale, 0), stepOf(scale, NaN), stepOf(scale, 1e9)]).toEqual([0, 0, STEPS]);
  });

  it("has whole cents, and small budgets finer", () => {
    expect(budgetAt({ low: 12.3456, high: 99 }, 0)).toBe(12.35);
    expect(budgetAt({ low: 0.123456, high: 99 }, 0)).toBe(0.1235);
    expect(budgetAt({ low: 0.0000123456, high: 99 }, 0)).toBe(0.0000123);
  });

  it("never rounds a needed budget down", () => {
    expect([roundedUp(12.3401), roundedUp(12.34), roundedUp(0.12341)]).toEqual([
      12.35, 12.34, 0.1235,
    ]);
  });
});

describe("what somebody types", () => {
  it("is an amount with or without a dollar sign and commas", () => {
    expect(["14", " $1,200.50 ", ".5", "14.50/h"].map(amount)).toEqual([14, 1200.5, 0.5, 14.5]);
  });

  it("is no amount where it is empty, zero, negative or words", () => {
    expect(["", "0", "-3", "ten", "1e5", "1.2.3", "Infinity"].map(amount)).toEqual(
      Array<null>(7).fill(null),
    );
  });

  it("has a decimal comma or commas of thousands, and is never multiplied by a guess", () => {
    expect(["60,5", "12,50", "0,125", "1,250", "1,250.50", "$1,250,000"].map(amount)).toEqual([
      60.5, 12.5, 0.125, 1250, 1250.5, 1_250_000,
    ]);
    expect(["1234,567", "1.250,50", "12,34,567", "1,25,", ",5", "1,250,5"].map(amount)).toEqual(
      Array<null>(6).fill(null),
    );
  });

  it("is refused in words, also where it is more than can be", () => {
    expect(amountProblem("14.50")).toBe("");
    expect(amountProblem("ten")).toMatch(/above 0/);
    expect(amount("9".repeat(400))).toBeNull();
    expect(amountProblem("1" + "0".repeat(16))).toMatch(/more than/);
  });

  it("is a time in the unit beside it", () => {
    expect([inSeconds(2, "h"), inSeconds(1.5, "min"), inSeconds(9, "s")]).toEqual([7200, 90, 9]);
  });
});
