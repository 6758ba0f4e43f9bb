// @vitest-environment node
import { expect, test } from "vitest";

import { fitted, type Drawn } from "./margins";
import type { Unit } from "./axis";

const measure = (text: string) => text.length * 6.6;
const UNITS: readonly Unit[] = ["number", "usd", "seconds", "time"];

function chart(part: Partial<Drawn>): Drawn {
  const plain = { x: { label: "" }, y: { label: "" }, xs: [0, 1], ys: [0, 1] };
  return { ...plain, width: 300, height: 240, ...part };
}

test.each(UNITS)("words across stay inside the chart and apart from each other: %s", (unit) => {
  for (const width of [200, 310, 500, 1300]) {
    for (const span of [0.002, 3, 700, 86_400, 180_000, 5e7]) {
      const from = unit === "time" ? 1_795_000_000 : 0;
      const { sx } = fitted(
        chart({ x: { label: "", unit }, xs: [from, from + span], width }),
        measure,
      );
      let end = 0;
      for (const { value, text } of sx.ticks) {
        const start = sx(value) - measure(text) / 2;
        expect(start, `${text} at ${width}`).toBeGreaterThanOrEqual(end);
        end = start + measure(text);
      }
      expect(end).toBeLessThanOrEqual(width);
      expect(sx.ticks.length).toBeGreaterThan(0);
    }
  }
});

test("the margin is as wide as the widest words beside it", () => {
  const of = (most: number) =>
    fitted(chart({ y: { label: "", unit: "usd" }, ys: [0, most] }), measure);
  for (const most of [0.000_03, 0.004, 7, 90_000, 9_900_000]) {
    const { sy, margin } = of(most);
    const widest = Math.max(...sy.ticks.map(({ text }) => measure(text)));
    expect(margin.left).toBeGreaterThanOrEqual(widest + 6);
  }
  expect(of(7).margin.left).toBeLessThan(of(90_000).margin.left);
});

test("a chart in which only one tick has room is still an axis", () => {
  const { sx } = fitted(
    chart({ x: { label: "", unit: "time" }, xs: [1e9, 1e9 + 90_000] }),
    () => 190,
  );
  expect(sx.ticks).toHaveLength(1);
  expect(sx.invert(sx(1e9 + 5))).toBeCloseTo(1e9 + 5);
});
