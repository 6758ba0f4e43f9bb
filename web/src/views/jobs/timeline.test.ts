import { describe, expect, test } from "vitest";

import {
  costPoints,
  hasSteps,
  rateSteps,
  reported,
  rescaleMoments,
  rescaleParts,
  widthSeries,
} from "./timeline";

const run = (since: number, until: number | null, width: number, type = "T4", cost = 1) => ({
  since,
  until,
  width,
  gpu_type: type,
  nodes: [1],
  cost_usd: cost,
});
const point = (at: number, with_ = {}) => ({
  at,
  epoch: 0,
  progress: 0,
  step: null,
  loss: null,
  batch_size: null,
  rate: null,
  ...with_,
});

describe("GPUs over time", () => {
  test("are zero before the first start, between runs and after the end", () => {
    const [series] = widthSeries([run(10, 20, 2), run(25, 40, 4)], 0, 50);
    expect(series?.points).toEqual([
      [0, 0],
      [10, 2],
      [20, 0],
      [25, 4],
      [40, 0],
      [50, 0],
    ]);
  });

  test("do not drop to zero where one run follows the other at once", () => {
    const [series] = widthSeries([run(0, 20, 2), run(20, 40, 4)], 0, 40);
    expect(series?.points).toEqual([
      [0, 2],
      [20, 4],
      [40, 0],
    ]);
  });

  test("last until now while the job holds them", () => {
    const [series] = widthSeries([run(0, null, 2)], 0, 30);
    expect(series?.points).toEqual([
      [0, 2],
      [30, 2],
    ]);
  });

  test("have a line for each type", () => {
    const series = widthSeries([run(0, 10, 2), run(12, null, 1, "A100")], 0, 20);
    expect(series.map(({ name }) => name)).toEqual(["T4", "A100"]);
    expect(series[1]?.points[0]).toEqual([0, 0]);
  });

  test("change at moments that say from what to what", () => {
    const moments = rescaleMoments([run(0, 10, 2), run(12, 20, 4), run(22, null, 4)]);
    expect(moments.map(({ x, text }) => [x, text])).toEqual([
      [12, "2×T4 → 4×T4"],
      [22, "started again on 4×T4"],
    ]);
  });
});

test("cost rises while GPUs are held, and stays in between", () => {
  expect(costPoints([run(10, 20, 2, "T4", 3), run(30, null, 2, "T4", 1)], 0, 40)).toEqual([
    [0, 0],
    [10, 0],
    [20, 3],
    [30, 3],
    [40, 4],
  ]);
});

describe("what a job reported", () => {
  test("is drawn where it was reported", () => {
    const points = [point(1, { loss: 3 }), point(2), point(3, { loss: 2 })];
    expect(reported(points, (each) => each.loss, "time")).toEqual([
      [1, 3],
      [3, 2],
    ]);
  });

  test("over steps is cut where a run goes back to its checkpoint", () => {
    const points = [
      point(1, { step: 10, loss: 3 }),
      point(2, { step: 20, loss: 2 }),
      point(3, { step: 15, loss: 2.5 }),
    ];
    expect(reported(points, (each) => each.loss, "step")).toEqual([
      [10, 3],
      [20, 2],
      [15, null],
      [15, 2.5],
    ]);
    expect(hasSteps(points)).toBe(true);
    expect(hasSteps([point(1), point(2, { step: 1 })])).toBe(false);
  });

  test("as a rate holds over the stretch that it is the average of, with gaps between runs", () => {
    const points = [
      point(0),
      point(10, { rate: 5 }),
      point(20, { rate: 6 }),
      point(30),
      point(40, { rate: 9 }),
    ];
    expect(rateSteps(points, "time")).toEqual([
      [0, 5],
      [10, 6],
      [20, null],
      [30, 9],
      [40, 9],
    ]);
  });
});

test("parts of a rescaling come in their order, with their share of the whole", () => {
  const parts = rescaleParts({ total: 10, load: 2.5, stop: 5 });
  expect(parts.map(({ key, share }) => [key, share])).toEqual([
    ["stop", 0.5],
    ["load", 0.25],
  ]);
  expect(rescaleParts({})).toEqual([]);
});
