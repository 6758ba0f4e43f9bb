import { describe, expect, it } from "vitest";

import type { PlanClass, PlanVariant } from "../../api/types";
import { changeWords, differs, epochWords, stretches } from "./widths";

const FIGURES = {
  average_jct_s: 60,
  spend_per_hour: 1,
  cost_per_job: 1,
  rescalings: 1,
  cheapest_jct_s: 90,
  cheapest_cost_per_job: 0.5,
};

function plan(...variants: PlanVariant[]): PlanClass {
  return { name: "cnn", ...FIGURES, variants };
}

function all(widths: number[], gpu_type = "T4"): PlanVariant {
  return { share: 1, gpu_type, widths };
}

function told(before: PlanClass | null, after: PlanClass): string[] {
  const found = stretches(before, after);
  return found.map((one) => `${epochWords(one, found.length === 1)}: ${changeWords(one)}`);
}

describe("how a class's GPUs change, in words", () => {
  it("joins epochs with the same GPUs before and after", () => {
    expect(told(plan(all([2, 2, 2, 4])), plan(all([4, 4, 4, 4])))).toEqual([
      "epochs 1–3: 2 → 4 ×T4",
      "epoch 4: 4×T4",
    ]);
  });

  it("speaks of all epochs where there is nothing to tell apart", () => {
    expect(told(plan(all([1, 1])), plan(all([8, 8])))).toEqual(["all epochs: 1 → 8 ×T4"]);
  });

  it("names both types where the type changes", () => {
    expect(told(plan(all([4])), plan(all([2], "A100")))).toEqual(["all epochs: 4×T4 → 2×A100"]);
  });

  it("gives shares where jobs of a class differ", () => {
    const mixed = plan(
      { share: 0.34, gpu_type: "A100", widths: [16] },
      { share: 0.66, gpu_type: "A100", widths: [14] },
    );
    expect(told(plan(all([8], "A100")), mixed)).toEqual([
      "all epochs: 8×A100 → 14×A100 (66 %) or 16×A100 (34 %)",
    ]);
  });

  it("gives no shares in epochs where both variants have the same", () => {
    const mixed = plan(
      { share: 0.5, gpu_type: "T4", widths: [2, 4] },
      { share: 0.5, gpu_type: "T4", widths: [2, 8] },
    );
    expect(told(mixed, mixed)).toEqual(["epoch 1: 2×T4", "epoch 2: 4×T4 (50 %) or 8×T4 (50 %)"]);
  });

  it("leaves out a variant that next to no job gets", () => {
    const sliver = { share: 6e-7, gpu_type: "T4", widths: [2] };
    expect(told(null, plan({ ...all([1]), share: 1 - 6e-7 }, sliver))).toEqual([
      "all epochs: 1×T4",
    ]);
  });

  it("follows a variant that moves to another type on its way", () => {
    const moving = plan({ share: 1, gpu_types: ["T4", "A100"], widths: [4, 2] });
    expect(told(plan(all([4, 4])), moving)).toEqual(["epoch 1: 4×T4", "epoch 2: 4×T4 → 2×A100"]);
  });

  it("reads plans that route every epoch by itself", () => {
    const routed: PlanClass = {
      name: "cnn",
      ...FIGURES,
      epochs: [[{ share: 1, gpu_type: "T4", width: 3 }]],
    };
    expect(told(plan(all([1])), routed)).toEqual(["all epochs: 1 → 3 ×T4"]);
  });
});

describe("whether a class changes", () => {
  const change = { name: "cnn", arrivals_per_hour: 1, active_jobs: 2, changed: true, before: null };

  it("is no where a reader would see no difference", () => {
    const after = plan({ ...all([1]), share: 1 - 1e-5 }, { ...all([2]), share: 1e-5 });
    expect(differs({ ...change, differs: true, unchanged: plan(all([1])), after })).toBe(false);
  });

  it("is yes for other GPUs", () => {
    const [unchanged, after] = [plan(all([1])), plan(all([2]))];
    expect(differs({ ...change, differs: true, unchanged, after })).toBe(true);
  });

  it("is what the service says where it says no", () => {
    const [unchanged, after] = [plan(all([1])), plan(all([2]))];
    expect(differs({ ...change, differs: false, unchanged, after })).toBe(false);
  });
});
