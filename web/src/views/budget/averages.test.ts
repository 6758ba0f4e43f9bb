import { expect, test } from "vitest";

import type { Cost } from "../../api/types";
import { distinct } from "./averages";

const NOW = Date.UTC(2026, 10, 18) / 1000;
const H = 3600;

/** Asked for so many hours, of which the first node was there for some. */
function cost(asked: number, rented: number, late = 0): { data: Cost } {
  const until = NOW + late;
  const hours = Math.min(asked, rented) + late / H;
  const part = { since: until - asked * H, until, now: until };
  return { data: { ...part, average_spend_per_hour: 10, total_usd: 10 * hours } as Cost };
}

function labels(rented: number): string[] {
  return distinct([
    { label: "day", cost: cost(24, rented) },
    { label: "week", cost: cost(168, rented, 45) }, // asked less often
    { label: "month", cost: cost(430, rented, -20) },
  ]).map(({ label }) => label);
}

test("on a first day the three averages are one", () => {
  expect(labels(0.2)).toEqual(["Average so far"]);
  expect(labels(20)).toEqual(["Average so far"]);
});

test("in a first week the day has its own, and the others are one", () => {
  expect(labels(100)).toEqual(["day", "Average so far"]);
});

test("later there are three", () => {
  expect(labels(300)).toEqual(["day", "week", "month"]);
  expect(labels(1000)).toEqual(["day", "week", "month"]);
});

test("nothing rented yet is said once, and an answer that is not there yet is waited for", () => {
  const none = { data: { ...cost(24, 1).data, average_spend_per_hour: 0, total_usd: 0 } };
  const all = [none, none, { data: null }];
  const found = distinct(all.map((each, n) => ({ label: `${n}`, cost: each })));
  expect(found.map(({ label }) => label)).toEqual(["Average so far", "2"]);
});
