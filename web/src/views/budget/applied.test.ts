// @vitest-environment node
import { expect, it } from "vitest";

import { noted, type Applied } from "./applied";

const SET: Applied = { budget: 42, before: 7, seen: false, plan: null };

it("waits for the first plan after the new budget, and names that one", () => {
  expect(noted(SET, 30, 7)).toBe(SET);
  const seen = noted(SET, 42, 7);
  expect(seen).toEqual({ ...SET, seen: true });
  expect(seen && noted(seen, 42, 8)).toEqual({ ...SET, seen: true, plan: 8 });
});

it("has nothing to say once another plan is there", () => {
  const followed = { ...SET, seen: true, plan: 8 };
  expect(noted(followed, 42, 8)).toBe(followed);
  expect(noted(followed, 42, 9)).toBeNull();
});

it("has nothing to say once the budget is another one", () => {
  expect(noted({ ...SET, seen: true }, 50, 7)).toBeNull();
});

it("does not take a plan for the old budget for one that follows the new", () => {
  expect(noted(SET, 30, 8)).toBe(SET);
});
