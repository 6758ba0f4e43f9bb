/** The shapes that the service answers with. Made from it: see `shapes.py`. */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Budget = Schemas["Budget"];
export type ClassChange = Omit<Schemas["ClassChange"], "before" | "after"> & {
  before: PlanClass | null;
  after: PlanClass;
};
export type Cost = Schemas["Cost"];
export type Event = Schemas["Event"];
export type EventList = Schemas["EventList"];
export type Frontier = Schemas["Frontier"];
export type FrontierPoint = Schemas["FrontierPoint"];
export type Health = Schemas["Health"];
export type History = Schemas["History"];
export type JobDetails = Schemas["JobDetails"];
export type JobHistory = Schemas["JobHistory"];
export type JobList = Omit<Schemas["JobList"], "jobs"> & { jobs: JobRow[] };
export type JobRow = Schemas["JobRow"];
export type JobState = JobRow["state"];
export type Live = Schemas["Live"];
export type LivePlan = Omit<Schemas["LivePlan"], "plan"> & { plan: Plan };
export type Node = Schemas["Node"];
export type PolicyChoice = Schemas["PolicyChoice"];
export type Preview = Omit<Schemas["Preview"], "classes" | "cluster"> & {
  classes: ClassChange[];
  cluster: Record<string, ClusterSize>;
};
export type Simulation = Omit<Schemas["Simulation"], "result"> & { result?: Comparison };
export type TraceChoice = Schemas["TraceChoice"];
export type TraceChoices = Schemas["TraceChoices"];
export type Why = Schemas["Why"];

/** What `boa plan --json` prints. */
export interface Plan {
  budget_per_hour: number;
  spend_per_hour: number;
  average_jct_s: number;
  lower_bound_s: number;
  gap: number;
  shadow_price_s: number;
  solve_time_s: number;
  classes: PlanClass[];
  cluster: Record<string, ClusterSize>;
}

export interface ClusterSize {
  mean: number;
  std: number;
  p95: number;
}

export interface PlanClass {
  name: string;
  average_jct_s: number;
  spend_per_hour: number;
  cost_per_job: number;
  /** Per job, the first start included: only plans count it. */
  rescalings: number;
  variants?: PlanVariant[];
  /** Where every epoch is routed by itself, instead of variants. */
  epochs?: { share: number; gpu_type: string; width: number }[][];
}

export interface PlanVariant {
  share: number;
  gpu_type?: string;
  gpu_types?: string[];
  widths: number[];
}

/** What `boa show CLASS --json` prints. */
export interface ClassDocument {
  class: string;
  prior: string;
  jobs: number;
  succeeded: number;
  gpus: { min: number; max: number; types: string[] };
  weight: number;
  arrivals_per_hour: number;
  rescale_s: number;
  engine: string;
  /** What rescalings took, by engine and part; `total` first. */
  rescaling: Record<string, Record<string, { mean_s: number; count: number }>>;
  epochs: number;
  work: number[];
  noise_scale: (number | null)[];
  gpu_types: ClassOnType[];
}

export interface ClassOnType {
  name: string;
  gpus_per_node: number;
  tried: number;
  offered: number;
  curve: { widths: number[]; speedup: number[]; rate: number[] };
  measured_from: number | null;
  samples: {
    width: number;
    across_nodes: boolean;
    rate: number;
    seconds: number;
    reports: number;
    speedup: number | null;
    measured_speedup: number | null;
  }[];
}

/** What `boa compare --json` prints. */
export interface Comparison {
  points: ComparisonPoint[];
  comparisons: RivalPoint[];
  left_out: (Knob & { policy: string; why: string })[];
}

/** What a policy was told: a budget, a target efficiency, a number of nodes, a width. */
export interface Knob {
  knob: string | null;
  value: number | string | null;
}

/** A rival's point against BOA's line at the same spend; `at_gpus` where every GPU costs 1. */
export interface RivalPoint extends Knob {
  policy: string;
  at_spend_per_hour?: number;
  at_gpus?: number;
  jct_ratio: number;
  p95_ratio: number;
}

export interface ComparisonPoint extends Knob {
  policy: string;
  jobs: number;
  completed: number;
  average_jct_s: number;
  p50_jct_s: number;
  p95_jct_s: number;
  p99_jct_s: number;
  spend_per_hour: number;
  rented_spend_per_hour: number;
  gpu_hours: number;
  rescalings_per_job: number;
}
