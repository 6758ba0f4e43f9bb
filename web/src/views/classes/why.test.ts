// @vitest-environment node
import { expect, test } from "vitest";

import type { Why } from "../../api/types";
import { choices } from "./sample";
import { epochsOf, sensible, stepsOf, stretchesOf } from "./why";

test("widths that are slower and dearer than others are not sensible", () => {
  const found = sensible(choices([100, 1], [60, 1.2], [70, 1.5], [50, 2]));
  expect(found.map((one) => one.width)).toEqual([1, 2, 4]);
});

test("nor are those for which a mix of two others gives more", () => {
  // 3 saves 1 s for $1 after 2, while 4 saves 20 s for $2: nobody would stop at 3.
  const found = sensible(choices([100, 1], [60, 2], [59, 3], [40, 4]));
  expect(found.map((one) => one.width)).toEqual([1, 2, 4]);
});

test("a width that is faster and cheaper than a narrower one replaces it", () => {
  const found = sensible(choices([100, 2], [50, 1], [40, 3]));
  expect(found.map((one) => one.width)).toEqual([2, 3]);
});

test("what a dollar saves falls from step to step, so one level divides them", () => {
  const steps = stepsOf(choices([100, 1], [60, 2], [59, 3], [40, 4], [38, 6]));
  expect(steps.map(({ from, to }) => [from, to])).toEqual([
    [1, 2],
    [2, 4],
    [4, 5],
  ]);
  expect(steps.map((step) => step.secondsPerUsd)).toEqual([40, 10, 1]);
});

test("the width that is best at an exchange rate is the last step above it", () => {
  const all = choices([300, 1], [160, 1.3], [130, 1.5], [95, 2.4], [94, 3], [70, 3.3]);
  for (const rate of [1, 10, 20, 50, 100, 200, 1000]) {
    const best = [...all].sort(
      (a, b) => a.time_s + rate * a.cost_usd - (b.time_s + rate * b.cost_usd),
    )[0];
    const worth = stepsOf(all).filter((step) => step.secondsPerUsd > rate);
    expect(worth.at(-1)?.to ?? sensible(all)[0]?.width).toBe(best?.width);
  }
});

const EPOCH = { first_epoch: 0, last_epoch: 0, width: 1, choices: choices([1, 1]) };
const WHY: Why = {
  name: "bert",
  plan: 1,
  seconds_per_usd: 10,
  words: ["first", "second", "third"],
  variants: [
    { share: 0.999999, gpu_type: "T4", epochs: [EPOCH] },
    {
      share: 0.000001,
      gpu_type: "T4",
      epochs: [EPOCH, { ...EPOCH, first_epoch: 1, last_epoch: 3 }],
    },
  ],
  now: 0,
};

test("each stretch has the service's sentence on it, and next to no jobs get none", () => {
  expect(stretchesOf(WHY).map(({ words, title }) => [words, title])).toEqual([
    ["first", "The job"],
  ]);
});

test("where jobs differ, titles say how many they are for", () => {
  const variants = WHY.variants.map((variant) => ({ ...variant, share: 0.5 }));
  expect(stretchesOf({ ...WHY, variants }).map(({ words, title }) => [words, title])).toEqual([
    ["first", "The job (50 % of the jobs)"],
    ["second", "Epoch 1 (50 % of the jobs)"],
    ["third", "Epochs 2–4 (50 % of the jobs)"],
  ]);
});

test("epochs are counted from 1", () => {
  expect(epochsOf({ ...EPOCH, last_epoch: 79 }, 80)).toBe("All epochs");
});
