import { expect, it } from "vitest";

import type { Preview } from "../../api/types";
import { marksOf } from "./marks";

const SCALE = { low: 5, high: 100 };
const PREVIEW = {
  budget_per_hour: 10,
  too_small_per_hour: null,
  average_jct_s: 900,
  unchanged: { budget_per_hour: 30, average_jct_s: 600 },
} as Preview;

it("marks the budget that is tried where it is, with the budget there is", () => {
  const [now, tried] = marksOf(PREVIEW, 10, SCALE);
  expect(now).toMatchObject({ x: 30, y: 600, text: "now" });
  expect(tried).toMatchObject({ x: 10, y: 900, text: "$10.00/h" });
});

it("marks a budget that does not keep up where it was set, not at the least that does", () => {
  const [, tried] = marksOf({ ...PREVIEW, too_small_per_hour: 25 }, 10, SCALE);
  expect(tried?.x).toBe(10);
});

it("keeps a budget beyond the chart at its edge", () => {
  expect(marksOf({ ...PREVIEW, budget_per_hour: 1 }, 1, SCALE)[1]?.x).toBe(5);
});
