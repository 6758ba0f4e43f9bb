// @vitest-environment node
import { expect, test } from "vitest";

import { planned } from "./classes/sample";
import { jobPlannedWords, plannedWords } from "./planned";

const variant = (share: number, ...widths: number[]) => ({ share, gpu_type: "A100", widths });
const PLAN = planned("bert", variant(1, 4, 8));

function job(width: number, epoch = 0, wanted = width) {
  const share = { gpu_type: "A100", width: wanted };
  return { width, gpu_type: width > 0 ? "A100" : null, epoch, wanted: share };
}

test("a job is as planned where it has what its class's page says", () => {
  expect(plannedWords(PLAN)).toBe("4×A100, then 8×A100");
  expect(jobPlannedWords(job(4), PLAN)).toBe("as planned");
  expect(jobPlannedWords(job(8, 1), PLAN)).toBe("as planned");
  expect(jobPlannedWords(job(4, 1), PLAN)).toBe("planned: 8×A100");
});

test("a job that was given other GPUs on purpose is not as planned", () => {
  expect(jobPlannedWords(job(16, 0, 16), PLAN)).toBe("planned: 4×A100");
});

test("GPUs that are on their way are named apart from those that are planned", () => {
  expect(jobPlannedWords(job(0, 0, 4), PLAN)).toBe("planned: 4×A100, to get: 4×A100");
  expect(jobPlannedWords(job(4, 0, 2), PLAN)).toBe("as planned, to get: 2×A100");
});

test("where jobs of a class differ, any of the planned widths is as planned", () => {
  const mixed = planned("bert", variant(0.66, 14), variant(0.34, 16));
  expect(jobPlannedWords(job(16), mixed)).toBe("as planned");
  expect(jobPlannedWords(job(8), mixed)).toBe("planned: 14×A100 (66 %) or 16×A100 (34 %)");
});

test("without a plan both pages say so in the same words", () => {
  expect(jobPlannedWords({ ...job(2), wanted: null }, null)).toBe("not planned yet");
  expect(plannedWords(null)).toBe("not planned yet");
});
