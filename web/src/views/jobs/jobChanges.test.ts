import { expect, test } from "vitest";

import { changesOf } from "./jobChanges";

const SPEC = { weight: 1, gpus: { min: 1, max: 8 }, max_cost: 40 };
const AS_IT_IS = { priority: "normal", weight: "1", max_gpus: "8", max_cost: "40", tags: "" };

test("what is as it was is not sent", () => {
  expect(changesOf(AS_IT_IS, SPEC)).toEqual({});
});

test("an empty limit is taken away, others are changed", () => {
  const wishes = { ...AS_IT_IS, weight: "3", max_gpus: "4", max_cost: "" };
  expect(changesOf(wishes, SPEC)).toEqual({ weight: 3, gpus: { max: 4 }, max_cost: null });
});

test("fields that are left empty stay as they are", () => {
  expect(changesOf({ ...AS_IT_IS, weight: "", max_gpus: "", max_cost: "40" }, SPEC)).toEqual({});
});

test("another priority takes the place of a weight", () => {
  const wishes = { ...AS_IT_IS, priority: "urgent", weight: "3" };
  expect(changesOf(wishes, SPEC)).toEqual({ priority: "urgent" });
  const urgent = { ...SPEC, priority: "urgent" };
  expect(changesOf(wishes, urgent)).toEqual({});
  expect(changesOf({ ...wishes, priority: "normal" }, urgent)).toEqual({ priority: "normal" });
});

test("tags change kind by kind, one that is gone is taken away, and nonsense is refused", () => {
  const spec = { ...SPEC, tags: { project: "cats", grant: "7, or 8", year: "2025" } };
  const tags = (text: string) => changesOf({ ...AS_IT_IS, tags: text }, spec).tags;
  expect(tags("project=cats\ngrant=7, or 8\nyear=2025")).toBeUndefined();
  expect(tags("project=zoo\nyear=2025\nlab = a=b")).toEqual({
    project: "zoo",
    lab: "a=b",
    grant: null,
  });
  expect(() => tags("project")).toThrow("“project” is no KIND=VALUE");
});
