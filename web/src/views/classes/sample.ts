/** What is known of a class, for tests. */
import type {
  ClassDocument,
  ClassOnType,
  PlanClass,
  PlanVariant,
  WidthChoice,
} from "../../api/types";

export function onType(name: string, with_: Partial<ClassOnType> = {}): ClassOnType {
  return {
    name,
    gpus_per_node: 4,
    tried: 2,
    offered: 4,
    curve: { widths: [1, 2, 3, 4], speedup: [1, 1.8, 2.4, 2.8], rate: [2, 3.6, 4.8, 5.6] },
    measured_from: 1,
    samples: [],
    failed: [],
    layouts: [],
    ...with_,
  };
}

export function known(name: string, with_: Partial<ClassDocument> = {}): ClassDocument {
  return {
    class: name,
    prior: "perfect scaling until measured",
    jobs: 5,
    succeeded: 4,
    gpus: { min: 1, max: 4, types: ["T4"] },
    weight: 1,
    arrivals_per_hour: 2.5,
    rescale_s: 30,
    engine: "local",
    rescaling: {},
    epochs: 2,
    work: [3600, 3600],
    noise_scale: [null, null],
    gpu_types: [onType("T4")],
    ...with_,
  };
}

export function planned(name: string, ...variants: PlanVariant[]): PlanClass {
  return {
    name,
    average_jct_s: 600,
    spend_per_hour: 3,
    cost_per_job: 1.2,
    rescalings: 1,
    cheapest_jct_s: 900,
    cheapest_cost_per_job: 0.8,
    variants,
  };
}

/** Widths 1, 2, … with these times and costs. */
export function choices(...figures: [time: number, cost: number][]): WidthChoice[] {
  return figures.map(([time_s, cost_usd], index) => {
    const before = figures[index - 1];
    return {
      width: index + 1,
      time_s,
      cost_usd,
      saves_s: before ? before[0] - time_s : null,
      extra_usd: before ? cost_usd - before[1] : null,
    };
  });
}
