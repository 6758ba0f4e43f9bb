import { expect, it } from "vitest";

import type { History } from "../../api/types";
import { cropped } from "./history";

function history(since: number, empty: number, points = 160): History {
  const values = Array.from({ length: points }, (_, n) => (n < empty ? 0 : 5));
  const noted = values.map((value) => (value > 0 ? 10 : null));
  return {
    since,
    until: since + points,
    step_s: 1,
    spend_per_hour: values,
    average_spend_per_hour: noted,
    budget_per_hour: noted,
    gpus: {},
    active_jobs: noted,
    waiting_jobs: noted,
    now: since + points,
  };
}

async function asked(first: History): Promise<string[]> {
  const paths: string[] = [];
  await cropped((path) => {
    paths.push(path);
    return Promise.resolve(first);
  }, first.since);
  return paths;
}

it("asks again from when there was anything, if most of it is empty", async () => {
  expect(await asked(history(1000, 120))).toEqual([
    "/history?since=1000&points=160",
    "/history?since=1120&points=160",
  ]);
});

it("asks once where there is a whole history, or none at all", async () => {
  expect(await asked(history(1000, 3))).toHaveLength(1);
  expect(await asked(history(1000, 160))).toHaveLength(1);
});
