/** Policies in the groups that tell them apart. */

export interface PolicyGroup {
  title: string;
  about: string;
  policies: string[];
}

const FIXED_CLUSTER = ["pollux", "sia", "rubick", "tiresias"];

export function groupsOf(policies: readonly string[]): PolicyGroup[] {
  const left = new Set(policies);
  const taken = (wanted: (name: string) => boolean) => {
    const found = [...left].filter(wanted);
    found.forEach((name) => left.delete(name));
    return found;
  };
  const groups: PolicyGroup[] = [
    {
      title: "This scheduler",
      about: "at each of the budgets",
      policies: taken((name) => name === "boa"),
    },
    {
      title: "Rent by efficiency",
      about: "at target efficiencies; what they spend comes of that",
      policies: taken((name) => name.includes("-autoscale")),
    },
    {
      title: "On a fixed cluster",
      about: "about as large as each of the budgets buys",
      policies: taken((name) => FIXED_CLUSTER.includes(name)),
    },
    { title: "Others", about: "with settings of their own", policies: taken(() => true) },
  ];
  return groups.filter((group) => group.policies.length > 0);
}
