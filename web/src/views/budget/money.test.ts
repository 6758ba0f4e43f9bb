import { describe, expect, it } from "vitest";

import type { Cost, Frontier } from "../../api/types";
import {
  bandWords,
  moreWords,
  dollarWords,
  forecastOf,
  hoursOf,
  jctAt,
  billWords,
  pacingWords,
  unusedWords,
  verdict,
} from "./money";

const NOW = Date.UTC(2026, 10, 16) / 1000; // half of a month of 30 days has gone
const monthEnd = Date.UTC(2026, 11, 1) / 1000;

function cost(fields: Partial<Cost>): Cost {
  return {
    budget_per_hour: 10,
    max_spend_per_hour: null,
    effective_budget_per_hour: 10,
    allowed_per_hour: 10,
    average_spend_per_hour: 10,
    spend_now_per_hour: 10,
    since: NOW - 15 * 86_400,
    until: NOW,
    now: NOW,
    total_usd: 3600,
    jobs_usd: 3600,
    idle_usd: 0,
    provisioning_usd: 0,
    forecast_month_usd: 7200,
    forecast_basis: "spend",
    ...fields,
  };
}

const FRONTIER: Frontier = {
  plan: 1,
  gain: 1,
  points: [
    { budget_per_hour: 10, average_jct_s: 1000 },
    { budget_per_hour: 20, average_jct_s: 500 },
    { budget_per_hour: 40, average_jct_s: 300 },
  ],
  cheapest_per_hour: 10,
  fastest_per_hour: 40,
  fastest_jct_s: 300,
  now: NOW,
};

describe("an average against the budget", () => {
  it("is on budget within two percent either way", () => {
    expect(verdict(10.19, 10, 24)).toEqual({ tone: "good", words: "on budget" });
    expect(verdict(9.81, 10, 24)).toEqual({ tone: "good", words: "on budget" });
  });

  it("says by how much it is over, and warns before it is bad", () => {
    expect(verdict(10.5, 10, 24)).toEqual({ tone: "warn", words: "5 % over budget" });
    expect(verdict(11.2, 10, 24)).toEqual({ tone: "bad", words: "12 % over budget" });
    expect(verdict(36, 10, 24)).toEqual({ tone: "bad", words: "3.6× the budget" });
  });

  it("is good where less is spent", () => {
    expect(verdict(5, 10, 24)).toEqual({ tone: "good", words: "50 % under budget" });
  });

  it("is no verdict in the first hour", () => {
    expect(verdict(99, 10, 0.5)).toEqual({
      tone: "plain",
      words: "too early to say: 30 min so far",
    });
    expect(verdict(0, 10, 0).tone).toBe("plain");
  });

  it("is over the hours that the total was spent in", () => {
    expect(hoursOf(cost({ total_usd: 30, average_spend_per_hour: 10 }))).toBe(3);
    expect(hoursOf(cost({ total_usd: 0, average_spend_per_hour: 0 }))).toBe(0);
  });
});

describe("the forecast of a month", () => {
  it("is held against the budget over the hours of the month", () => {
    expect(forecastOf(cost({ total_usd: 3600, forecast_month_usd: 7300 }))).toMatchObject({
      allowed: 7200,
      tone: "good",
      words: "on budget",
    });
  });

  it("allows only for the hours since anything was rented", () => {
    const late = cost({ total_usd: 1440, average_spend_per_hour: 20, forecast_month_usd: 8640 });
    expect(forecastOf(late)).toMatchObject({ allowed: 3600 + 720, words: "2× the budget" });
  });

  it("allows for the hours to come what a calendar does, whatever holds now", () => {
    const calendar = { month_left_usd: 500 } as NonNullable<Cost["calendar"]>;
    expect(forecastOf(cost({ total_usd: 3600, calendar })).allowed).toBe(3600 + 500);
  });

  it("says of how little it is, and that there is none before anything was spent", () => {
    const early = cost({ forecast_basis: "short", forecast_over_s: 720, forecast_month_usd: 3602 });
    expect(forecastOf(early)).toMatchObject({
      tone: "plain",
      words: "at the pace of the last 12 min only",
    });
    expect(forecastOf(cost({ forecast_basis: "none", forecast_month_usd: 0 }))).toMatchObject({
      tone: "plain",
      words: "no forecast yet: nothing spent so far",
    });
  });

  it("is no budget's where as much is spent as that allows", () => {
    const left = 5;
    const now = monthEnd - left * 3600;
    const average = 10.01;
    const spent = average * (30 * 24 - left);
    const close = cost({
      now,
      total_usd: spent,
      average_spend_per_hour: average,
      forecast_month_usd: spent + average * left,
    });
    expect(forecastOf(close)).toMatchObject({ tone: "good", words: "on budget" });
  });
});

describe("what one more dollar buys", () => {
  it("lies on straight lines between the frontier's points", () => {
    expect([10, 15, 20, 30, 40, 99].map((budget) => jctAt(FRONTIER, budget))).toEqual([
      1000, 750, 500, 400, 300, 300,
    ]);
  });

  it("is unknown below the cheapest budget", () => {
    expect(jctAt(FRONTIER, 9)).toBeNull();
    expect(dollarWords(FRONTIER, 9)).toBe("");
  });

  it("is told in seconds per job", () => {
    expect(dollarWords(FRONTIER, 12)).toBe(
      "One more dollar per hour would save 50 s per job on average.",
    );
  });

  it("is nothing at the fastest", () => {
    expect(dollarWords(FRONTIER, 40)).toBe("More money would not make jobs any faster.");
  });
});

describe("what more money would do", () => {
  it("is what one more dollar buys, where neither budget nor cap is in the way", () => {
    expect(moreWords(FRONTIER, 12, null)).toContain("One more dollar per hour would save 50 s");
    expect(moreWords(FRONTIER, 12, 30)).toContain("One more dollar");
  });

  it("is what is needed, where the budget is too small", () => {
    expect(moreWords(FRONTIER, 5, null)).toMatch(/^Too small.*needs at least \$10\.00\/h/);
    expect(moreWords(FRONTIER, 5, 7)).toMatch(/^Too small/);
  });

  it("is nothing under a cap, and the cap is blamed where it is too small itself", () => {
    expect(moreWords(FRONTIER, 90, 80)).toBe("More money would not make jobs any faster.");
    expect(moreWords(FRONTIER, 30, 20)).toContain("$20.00/h is below this budget");
    expect(moreWords(FRONTIER, 30, 7)).toContain(
      "The hard cap of $7.00/h is below what this workload needs ($10.00/h)",
    );
  });
});

describe("what plans are made with", () => {
  it("is the cap, where that is below the budget, and not the bill's fault", () => {
    expect(billWords(1.5, 20, 60, 20)).toBe(
      "Planned with $20.00/h: the hard cap, which is below this budget.",
    );
    expect(billWords(1.5, 16, 24, 20)).toContain("a planned dollar has come to $1.50");
  });

  it("is worth no word where it is the budget", () => {
    expect(pacingWords(10, 10.05, null)).toBe("");
  });

  it("is explained where the average is being caught up with", () => {
    expect(pacingWords(10, 12, null)).toContain("less was spent");
    expect(pacingWords(10, 8, null)).toContain("more was spent");
  });

  it("is told by what a planned dollar comes to on the bill", () => {
    expect(billWords(1.5, 20, 30, null)).toBe(
      "Planned with $20.00/h, since a planned dollar has come to $1.50 on the bill so far: idle and booting nodes cost, too.",
    );
    expect(billWords(0.8, 20, 16, 50)).not.toContain("idle");
    expect(billWords(1.004, 20, 20, null)).toBe("");
  });

  it("is the cap where that is below the budget", () => {
    expect(pacingWords(10, 6, 6)).toContain("hard cap is below the budget");
  });
});

describe("money that no job uses", () => {
  const idle = { nodes: 1, gpus: 3, per_hour: 3, nodes_per_hour: 4, nodes_worth_per_hour: 11.8 };
  it("is told with what its nodes are worth", () => {
    expect(unusedWords({ ...idle, why: "idle" })).toBe(
      "for 3 idle GPUs on 1 node that is kept: worth $11.80/h to jobs, for $4.00/h",
    );
  });
  it("says of nodes that are on their way out that they are", () => {
    expect(unusedWords({ ...idle, nodes: 2, why: "leaving" })).toBe(
      "for 2 nodes given back and not gone yet",
    );
  });
});

it("says the forecast's band where there is one", () => {
  const cost = { forecast_low_usd: null, forecast_high_usd: null } as unknown as Cost;
  expect(bandWords(cost)).toBe("");
  expect(bandWords({ ...cost, forecast_low_usd: 80, forecast_high_usd: 120 })).toBe(
    "four of five times $80.00 to $120.00",
  );
});
