// @vitest-environment node
import { expect, test } from "vitest";

import type { History } from "../../api/types";
import { demandOf, jobsOf, shownTypes, steps } from "./lines";

const HISTORY: History = {
  since: 100,
  until: 130,
  step_s: 10,
  spend_per_hour: [0, 4, 4],
  average_spend_per_hour: [null, 4, 4],
  budget_per_hour: [null, 5, 5],
  gpus: {
    T4: { rented: [0, 4, 4], used: [0, 2, 4], wanted: [null, 4, 8] },
    A100: { rented: [0, 0, 0], used: [0, 0, 0], wanted: [null, 0, 0] },
    V100: { rented: [0, 0, 0], used: [0, 0, 0], wanted: [null, 0, 2] },
  },
  active_jobs: [null, 1, 2],
  waiting_jobs: [null, 0, 1],
  now: 130,
};

test("each number holds for its stretch, the last until the end", () => {
  expect(steps(HISTORY, [1, null, 3])).toEqual([
    [100, 1],
    [110, null],
    [120, 3],
    [130, 3],
  ]);
});

test("types that were neither rented nor wanted are left out", () => {
  expect(shownTypes(HISTORY)).toEqual(["T4", "V100"]);
});

test("what was wanted is a dashed line over what was rented and used", () => {
  const series = demandOf(HISTORY, "T4");
  expect(series.map(({ name, kind, dashed }) => [name, kind, dashed ?? false])).toEqual([
    ["rented", "stepBand", false],
    ["used", "stepBand", false],
    ["wanted", "step", true],
  ]);
  expect(demandOf(HISTORY, "H100")).toEqual([]);
});

test("jobs are shown as far back as they were noted down", () => {
  expect(jobsOf(HISTORY)[0]?.points[0]).toEqual([100, null]);
  expect(jobsOf(HISTORY)[1]?.points.at(-1)).toEqual([130, 1]);
});
