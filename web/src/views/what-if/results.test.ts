import { describe, expect, it } from "vitest";

import type { Comparison, ComparisonPoint, RivalPoint } from "../../api/types";
import { moneyWord, rivalOf, sentences, seriesOf, told, type Finished } from "./results";

function point(policy: string, value: number, spend: number, jct: number): ComparisonPoint {
  return {
    policy,
    knob: policy === "boa" ? "budget" : "target_efficiency",
    value,
    jobs: 10,
    completed: 10,
    average_jct_s: jct,
    p50_jct_s: jct,
    p95_jct_s: 2 * jct,
    p99_jct_s: 3 * jct,
    makespan_s: 4 * jct,
    gpu_hours: 1,
    average_gpus: 1,
    spend_per_hour: spend,
    rented_gpus: 1,
    rented_spend_per_hour: spend,
    rescalings_per_job: 1,
    average_efficiency: null,
    average_queueing_s: 0,
    wall_s: 1,
  };
}

function rival(value: number, spend: number, ratio: number): RivalPoint {
  const at = { at_spend_per_hour: spend, jct_ratio: ratio, p95_ratio: ratio };
  return { policy: "sia-autoscale", knob: "target_efficiency", value, ...at };
}

function result(points: ComparisonPoint[], comparisons: RivalPoint[]): Comparison {
  return { points, comparisons, left_out: [] };
}

function finished(id: string, found: Comparison): Finished {
  return {
    id,
    state: "done",
    trace: "day",
    policies: [],
    budgets: [],
    gpu_types: ["T4"],
    asked_at: 0,
    points_done: 1,
    points: 1,
    error: "",
    result: found,
  };
}

const BOA = [point("boa", 60, 60, 1000), point("boa", 120, 120, 500)];

describe("what a simulation says in words", () => {
  it("is how much sooner BOA's jobs finish at the same spend, and over which spends", () => {
    const points = [...BOA, point("sia-autoscale", 0.5, 87, 1000)];
    const said = sentences(result(points, [rival(0.5, 87, 1.4), rival(0.3, 110, 1.2)]));
    expect(said).toEqual([
      "At $87.00/h BOA’s jobs finish 1.4× sooner than sia-autoscale’s; " +
        "from $87.00/h to $110.00/h, sia-autoscale’s take 1.2 to 1.4 times as long.",
    ]);
  });

  it("gives the rival its due", () => {
    const points = [...BOA, point("sia-autoscale", 0.5, 87, 400)];
    expect(sentences(result(points, [rival(0.5, 87, 0.5)]))).toEqual([
      "At $87.00/h sia-autoscale’s jobs finish 2× sooner than BOA’s.",
    ]);
  });

  it("makes nothing of a difference that nobody would notice", () => {
    const points = [...BOA, point("sia-autoscale", 0.5, 87, 700)];
    expect(sentences(result(points, [rival(0.5, 87, 1.01)]))[0]).toContain("about as long");
  });

  it("says where to look if nothing was simulated at the same spend", () => {
    const points = [...BOA, point("sia-autoscale", 0.5, 300, 100)];
    expect(sentences(result(points, []))).toEqual([
      "sia-autoscale spent $300.00/h, BOA $60.00/h to $120.00/h: nothing can be said at the same " +
        "spend. Ask again with budgets around $300.00/h.",
    ]);
  });

  it("is who is faster for less money, where that needs no comparison at the same spend", () => {
    const dearer = [...BOA, point("sia-autoscale", 0.5, 130, 700)];
    expect(sentences(result(dearer, []))).toEqual([
      "BOA’s jobs finish sooner for less than sia-autoscale’s: " +
        "8.3 min at $120.00/h against 11.7 min at $130.00/h.",
    ]);
    const cheaper = [...BOA, point("sia-autoscale", 0.5, 50, 400)];
    expect(sentences(result(cheaper, []))[0]).toMatch(/^sia-autoscale’s jobs finish sooner/);
  });

  it("is nothing without BOA", () => {
    expect(sentences(result([point("sia-autoscale", 0.5, 87, 1000)], []))).toEqual([]);
  });

  it("counts GPUs where every GPU costs 1", () => {
    const counted = rival(0.5, 87, 1.5);
    delete counted.at_spend_per_hour;
    const points = [...BOA, point("sia-autoscale", 0.5, 87, 1000)];
    expect(sentences(result(points, [{ ...counted, at_gpus: 87 }]))[0]).toMatch(/^At 87 GPUs /);
  });
});

describe("the lines of a chart", () => {
  const found = result([point("sia-autoscale", 0.5, 90, 900), ...BOA.toReversed()], []);

  it("go by rising spend, BOA's first", () => {
    const [boa, sia] = seriesOf([finished("1", found)], "average_jct_s");
    expect([boa?.name, sia?.name]).toEqual(["boa", "sia-autoscale"]);
    expect(boa?.points).toEqual([
      [60, 1000],
      [120, 500],
    ]);
  });

  it("show P95 where that is asked for", () => {
    expect(seriesOf([finished("1", found)], "p95_jct_s")[1]?.points).toEqual([[90, 1800]]);
  });

  it("say of which simulation they are where there are several", () => {
    const names = seriesOf([finished("1", found), finished("2", found)], "average_jct_s");
    expect(new Set(names.map((one) => one.name)).size).toBe(4);
    expect(names[0]?.name).toBe("boa (day, no. 1)");
    expect(names.filter((one) => one.dashed)).toHaveLength(2);
  });
});

describe("a point", () => {
  it("says what its policy was told", () => {
    expect(told({ knob: "budget", value: 87 })).toBe("budget $87.00/h");
    expect(told({ knob: "target_efficiency", value: 0.5 })).toBe("target 50 %");
    expect(told({ knob: "nodes", value: "12" })).toBe("12 nodes");
    expect(told({ knob: null, value: null })).toBe("–");
  });

  it("finds its own comparison", () => {
    const mine = point("sia-autoscale", 0.3, 110, 700);
    const both = result([...BOA, mine], [rival(0.5, 87, 1.4), rival(0.3, 110, 1.2)]);
    expect(rivalOf(both, mine)?.jct_ratio).toBe(1.2);
    expect(BOA[0] && rivalOf(both, BOA[0])).toBeNull();
  });
});

describe("simulations that were billed by the node", () => {
  const billed = (found: ComparisonPoint, bill: number) => ({ ...found, bill_per_hour: bill });
  const node: Comparison = {
    ...result(
      [billed(point("boa", 60, 50, 1000), 70), billed(point("boa", 120, 100, 500), 130)],
      [],
    ),
    billing: "node",
  };

  it("are drawn by their bill", () => {
    const [line] = seriesOf([finished("1", node)], "average_jct_s");
    expect(line?.points).toEqual([
      [70, 1000],
      [130, 500],
    ]);
    expect(moneyWord([finished("1", node)])).toBe("bill");
  });

  it("are drawn by spend beside others that were not", () => {
    expect(moneyWord([finished("1", node), finished("2", result(BOA, []))])).toBe("spend");
  });

  it("are compared at the same bill", () => {
    const rival = { policy: "sia-autoscale", knob: "target_efficiency", value: 0.5 };
    const at = { ...rival, at_spend_per_hour: 100, jct_ratio: 1.5, p95_ratio: 1.5 };
    const points = [...node.points, billed(point("sia-autoscale", 0.5, 60, 2000), 100)];
    const [said] = sentences({ ...node, points, comparisons: [at] });
    expect(said).toContain("At a bill of $100");
  });

  it("are told at their bill", () => {
    const points = [...node.points, billed(point("sia-autoscale", 0.5, 60, 2000), 200)];
    expect(sentences({ ...node, points })[0]).toContain("$200");
  });
});
