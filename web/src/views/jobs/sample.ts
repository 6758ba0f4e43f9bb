/** Jobs for tests. */
import type { SweepDetails, SweepRow } from "../../api/types";
import type { SeenJob } from "../../state/live";

export function job(id: number, with_: Partial<SeenJob> = {}): SeenJob {
  return {
    class: "resnet18",
    id: String(id),
    name: `train-${id}`,
    state: "running",
    gpu_type: "T4",
    width: 4,
    epoch: 2,
    epochs: 9,
    submitted_at: 1000,
    started_at: 1010,
    ended_at: null,
    rescalings: 2,
    restarts: 0,
    exit_code: null,
    cost_usd: 1.5,
    on_gpus_s: 980,
    waiting_s: 20,
    since_submission_s: 1000,
    holds_gpus: true,
    owner: "mia",
    team: "vision",
    payer: null,
    priority: "normal",
    done: 0.25,
    left_s: 600,
    left_usd: 2.25,
    stop_requested: false,
    reason: "",
    paused: false,
    sweep: "",
    told_at: 2000,
    ...with_,
  };
}

export function mapped(...jobs: SeenJob[]): ReadonlyMap<string, SeenJob> {
  return new Map(jobs.map((each) => [each.id, each]));
}

export function sweepRow(id: string, with_: Partial<SweepRow> = {}): SweepRow {
  return {
    class: "resnet18",
    id,
    name: "lr search",
    owner: "mia",
    team: "vision",
    submitted_at: 1000,
    ended_at: null,
    outcome: "",
    jobs: 27,
    states: { running: 2, stopped: 25 },
    gpus: 8,
    cost_usd: 7.5,
    metric: "loss",
    best: member("4", { value: 0.125, parameters: { lr: "1e-4", seed: "1" } }),
    ...with_,
  };
}

export function member(
  job: string,
  with_: Partial<SweepDetails["members"][number]> = {},
): SweepDetails["members"][number] {
  return {
    job,
    state: "running",
    parameters: { lr: job },
    epoch: 2,
    value: null,
    cost_usd: 1,
    reason: "",
    ...with_,
  };
}
