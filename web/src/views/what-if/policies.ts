/** Policies in the groups that tell them apart: by what each is swept over. */

import type { PolicyChoice } from "../../api/types";

export interface PolicyGroup {
  title: string;
  about: string;
  policies: string[];
}

const GROUPS: readonly { knob: string; title: string; about: string }[] = [
  { knob: "budget", title: "This scheduler", about: "at each of the budgets" },
  {
    knob: "target_efficiency",
    title: "Rent by efficiency",
    about: "at target efficiencies; what they spend comes of that",
  },
  {
    knob: "nodes",
    title: "On a fixed cluster",
    about: "about as large as each of the budgets buys",
  },
];

export function groupsOf(policies: readonly PolicyChoice[]): PolicyGroup[] {
  const named = (wanted: (policy: PolicyChoice) => boolean) =>
    policies.filter(wanted).map((policy) => policy.name);
  const groups: PolicyGroup[] = [
    ...GROUPS.map(({ knob, ...said }) => ({
      ...said,
      policies: named((policy) => policy.knob === knob),
    })),
    {
      title: "Others",
      about: "with settings of their own",
      policies: named((policy) => !GROUPS.some((group) => group.knob === policy.knob)),
    },
  ];
  return groups.filter((group) => group.policies.length > 0);
}

/** Names of those that can be asked about, where budgets are by a calendar or not. */
export function askable(policies: readonly PolicyChoice[], byCalendar: boolean): string[] {
  return policies
    .filter((policy) => !byCalendar || policy.follows_calendar === true)
    .map((policy) => policy.name);
}

/** BOA against a rival that rents by itself, on any number of GPU types. */
export function firstPolicies(policies: readonly PolicyChoice[]): string[] {
  const found = [
    policies.find((policy) => policy.knob === "budget"),
    policies.find((policy) => policy.knob === "target_efficiency" && policy.several_gpu_types),
  ].filter((policy) => policy !== undefined);
  return (found.length > 0 ? found : policies.slice(0, 1)).map((policy) => policy.name);
}
