// @vitest-environment node
import { expect, test } from "vitest";

import type { Plan } from "../../api/types";
import { plannedWords } from "../planned";
import { byEpoch, plannedOn, shareOfSpend, sizeWords, widthLines } from "./model";
import { known, onType, planned } from "./sample";

const STEP = planned(
  "a",
  { share: 0.7, gpu_type: "A100", widths: [4, 16, 16] },
  { share: 0.3, gpu_type: "A100", widths: [8, 16, 16] },
);

test("planned GPUs are told stretch by stretch", () => {
  expect(plannedWords(STEP)).toBe("4×A100 (70 %) or 8×A100 (30 %), then 16×A100");
  expect(plannedWords(null)).toBe("not planned yet");
});

test("of many stretches only the ends are told", () => {
  const many = planned("a", { share: 1, gpu_type: "T4", widths: [1, 2, 3, 4, 8] });
  expect(plannedWords(many)).toBe("1×T4, … 8×T4 (5 stretches)");
});

test("a type has the widths that the plan uses on it", () => {
  expect(plannedOn(STEP, "A100")).toEqual([4, 8, 16]);
  expect(plannedOn(STEP, "T4")).toEqual([]);
});

test("a job's size is its time on the fewest GPUs of the first type", () => {
  expect(sizeWords(known("a"))).toBe("1 h on 1×T4");
  const none = onType("T4", { curve: { widths: [], speedup: [], rate: [] } });
  expect(sizeWords(known("a", { gpu_types: [none] }))).toBe("not known yet");
});

test("shares of the spend add up to one, and are not known of a class without a plan", () => {
  const plan = { classes: [planned("a"), { ...planned("b"), spend_per_hour: 9 }] } as Plan;
  expect(shareOfSpend(plan, "a")).toBe(0.25);
  expect(shareOfSpend(plan, "c")).toBeNull();
  expect(shareOfSpend(null, "a")).toBeNull();
});

test("each variant is a line with its share; one of next to no jobs is left out", () => {
  const rare = { share: 1e-7, gpu_type: "T4", widths: [1, 1, 1] };
  const lines = widthLines({ ...STEP, variants: [...(STEP.variants ?? []), rare] });
  expect(lines.map(({ name }) => name)).toEqual([
    "70 % of the jobs: A100",
    "30 % of the jobs: A100",
  ]);
  expect(lines[0]?.points.at(-1)).toEqual([3, 16]);
});

test("an epoch's value holds until the epoch is done", () => {
  expect(byEpoch([5, null])).toEqual([
    [0, 5],
    [1, null],
    [2, null],
  ]);
});
