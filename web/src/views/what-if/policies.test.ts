import { expect, it } from "vitest";

import type { PolicyChoice } from "../../api/types";
import { firstPolicies, groupsOf } from "./policies";

const policy = (name: string, knob: string | null, several_gpu_types = false): PolicyChoice => ({
  name,
  about: "",
  knob,
  several_gpu_types,
});

it("every policy is in exactly one group, by what it is swept over", () => {
  const all = [
    policy("boa", "budget"),
    policy("fixed", "width"),
    policy("pollux", "nodes"),
    policy("sia", "nodes"),
    policy("reservation", null),
    policy("new", "something new"),
  ];
  expect(groupsOf(all).map((group) => group.policies)).toEqual([
    ["boa"],
    ["pollux", "sia"],
    ["fixed", "reservation", "new"],
  ]);
});

it("the first question is about BOA and a rival that rents any GPU type by itself", () => {
  const pollux = policy("pollux-autoscale", "target_efficiency");
  const sia = policy("sia-autoscale", "target_efficiency", true);
  expect(firstPolicies([policy("boa", "budget", true), pollux, sia])).toEqual([
    "boa",
    "sia-autoscale",
  ]);
  expect(firstPolicies([policy("fixed", "width"), policy("sia", "nodes")])).toEqual(["fixed"]);
});
