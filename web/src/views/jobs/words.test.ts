import { describe, expect, test } from "vitest";

import { job } from "./sample";
import {
  costNow,
  endText,
  epochText,
  leftNow,
  leftText,
  leftUsdNow,
  reasonOf,
  timesOf,
  timesText,
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

  test("on GPUs and waiting make up the time since submission; one of them grows", () => {
    const told = { on_gpus_s: 4, waiting_s: 15, since_submission_s: 19, told_at: 2000 };
    const running = job(1, { ...told, holds_gpus: true });
    expect(timesOf(running, 2010)).toEqual({ onGpus: 14, waiting: 15, sinceSubmission: 29 });
    const paused = job(1, { ...told, holds_gpus: false, state: "waiting" });
    expect(timesOf(paused, 2010)).toEqual({ onGpus: 4, waiting: 25, sinceSubmission: 29 });
    const over = job(1, { ...told, holds_gpus: false, state: "succeeded" });
    expect(timesText(timesOf(over, 9000))).toBe("On GPUs 4 s, waiting 15 s, since submission 19 s");
  });

  test("the reason is a sentence, the service's own where it gave one", () => {
    expect(reasonOf(job(1, { state: "waiting", reason: "new" }))).toMatch(/first GPUs/);
    expect(reasonOf(job(1, { state: "failed", reason: "exit code 1" }))).toBe("Exit code 1.");
    expect(reasonOf(job(1, { stop_requested: true }))).toMatch(/asked to stop/);
    expect(reasonOf(job(1))).toBe("Training.");
  });
});
