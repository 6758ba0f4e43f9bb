import { describe, expect, test } from "vitest";

import { job } from "./sample";
import {
  costNow,
  endText,
  epochText,
  inOneUnit,
  leftNow,
  leftText,
  leftUsdNow,
  ranOf,
  reasonOf,
  tookOf,
} from "./words";

const PRICES = new Map([["T4", 0.9]]);

describe("cost", () => {
  test("of a running job grows by what it holds", () => {
    expect(costNow(job(1), PRICES, 2000 + 1800)).toBeCloseTo(1.5 + 0.5 * 4 * 0.9);
  });

  test("stays as told where the job does not run, the price is unknown, or no time has passed", () => {
    expect(costNow(job(1, { state: "rescaling" }), PRICES, 9000)).toBe(1.5);
    expect(costNow(job(1, { gpu_type: "H100" }), PRICES, 9000)).toBe(1.5);
    expect(costNow(job(1), PRICES, 1900)).toBe(1.5);
    expect(costNow(job(1, { told_at: Infinity }), PRICES, 9000)).toBe(1.5);
  });
});

describe("time left", () => {
  test("shrinks while a job runs; past its end it is late", () => {
    expect(leftNow(job(1), 2100)).toBe(500);
    expect(leftNow(job(1), 5000)).toBe(-2400);
    expect([600, 0.5, -59, -61].map(leftText)).toEqual([
      "10 min",
      "any moment",
      "any moment",
      "later than planned",
    ]);
    expect(endText(-61, 5000)).toMatch(/should have ended/);
  });

  test("of a late job counts from when it was due, whatever is told since", () => {
    expect(leftNow(job(1, { left_s: 0, told_at: 5000, due_at: 2600 }), 5000)).toBe(-2400);
  });

  test("costs less and less, to the same share; nobody knows of a late job", () => {
    expect(leftUsdNow(job(1), 2300)).toBeCloseTo(1.125);
    expect(leftUsdNow(job(1), 2610)).toBe(0);
    expect(leftUsdNow(job(1), 5000)).toBeNull();
    expect(leftUsdNow(job(1, { left_s: null }), 2000)).toBeNull();
    expect(leftUsdNow(job(1, { left_s: 0, left_usd: 0 }), 2000)).toBe(0);
  });

  test("stands still while it waits, and is unknown once it has ended", () => {
    expect(leftNow(job(1, { state: "waiting" }), 2100)).toBe(600);
    expect(leftNow(job(1, { state: "succeeded" }), 2100)).toBeNull();
    expect(leftNow(job(1, { left_s: null }), 2100)).toBeNull();
  });
});

describe("words", () => {
  test("epochs count from one and never past the last", () => {
    expect(epochText(job(1))).toBe("3 of 9");
    expect(epochText(job(1, { epoch: 9 }))).toBe("9 of 9");
  });

  test("a job ran since its first start; when it has ended that stands still", () => {
    expect(ranOf(job(1, { started_at: null }), 9000)).toBeNull();
    expect(ranOf(job(1), 9000)).toBe(7990);
    expect(ranOf(job(1, { ended_at: 1500 }), 9000)).toBe(490);
  });

  test("how long ago something was is said in one unit", () => {
    expect([0, 42.9, 60, 3599, 7300, 900_000].map(inOneUnit)).toEqual([
      "0 s",
      "42 s",
      "1 min",
      "59 min",
      "2 h",
      "10 d",
    ]);
  });

  test("a job took from its submission to its end", () => {
    expect(tookOf(job(1))).toBeNull();
    expect(tookOf(job(1, { ended_at: 1500 }))).toBe(500);
  });

  test("the reason is a sentence, the service's own where it gave one", () => {
    expect(reasonOf(job(1, { state: "waiting", reason: "new" }))).toMatch(/first GPUs/);
    expect(reasonOf(job(1, { state: "failed", reason: "exit code 1" }))).toBe("Exit code 1.");
    expect(reasonOf(job(1, { stop_requested: true }))).toMatch(/asked to stop/);
    expect(reasonOf(job(1))).toBe("Training.");
  });
});
