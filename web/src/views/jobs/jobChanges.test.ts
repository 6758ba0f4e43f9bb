import { expect, test } from "vitest";

import { changesOf } from "./jobChanges";

const SPEC = { weight: 1, gpus: { min: 1, max: 8 }, max_cost: 40 };
const AS_IT_IS = { weight: "1", max_gpus: "8", max_cost: "40" };

test("what is as it was is not sent", () => {
  expect(changesOf(AS_IT_IS, SPEC)).toEqual({});
});

test("an empty limit is taken away, others are changed", () => {
  const wishes = { weight: "3", max_gpus: "4", max_cost: "" };
  expect(changesOf(wishes, SPEC)).toEqual({ weight: 3, gpus: { max: 4 }, max_cost: null });
});

test("fields that are left empty stay as they are", () => {
  expect(changesOf({ weight: "", max_gpus: "", max_cost: "40" }, SPEC)).toEqual({});
});
