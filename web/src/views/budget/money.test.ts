import { describe, expect, it } from "vitest";

import type { Cost, Frontier } from "../../api/types";
import {
  averageBill,
  bandWords,
  billVerdict,
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
      words: "too soon to say: 30 min so far",
    });
    expect(verdict(0, 10, 0).tone).toBe("plain");
  });

  it("is over the hours that the total was spent in", () => {
    expect(hoursOf(cost({ total_usd: 30, average_spend_per_hour: 10 }))).toBe(3);
    expect(hoursOf(cost({ total_usd: 0, average_spend_per_hour: 0 }))).toBe(0);
  });
});

describe("the average bill and the forecast of a month", () => {
  const over = { forecast_over_s: 15 * 86_400, forecast_pace_per_hour: 10.6 };

  it("are compared with the budget over the same time, and have one verdict", () => {
    // Half a day without a node goes into one average and not into the other.
    const late = cost({ ...over, average_spend_per_hour: 9.8, forecast_allowed_per_hour: 10 });
    expect(averageBill(late)).toMatchObject({ perHour: 10.6, allowed: 10, hours: 360 });
    expect(billVerdict(late)).toEqual({ tone: "warn", words: "6 % over budget" });
    expect(forecastOf({ ...late, forecast_month_usd: 7632 })).toEqual({
      amount: 7632,
      words: "for Nov 1–30, if the bill stays at $10.60/h",
    });
  });

  it("say that it is too soon until an hour was spent", () => {
    const early = cost({ forecast_basis: "short", forecast_over_s: 720, forecast_month_usd: null });
    expect(forecastOf(early)).toEqual({
      amount: null,
      words: "too soon to say: 12 min of spending, and it takes an hour",
    });
    expect(billVerdict(early).words).toBe("too soon to say: 12 min so far");
    expect(forecastOf(cost({ forecast_basis: "none", forecast_month_usd: null }))).toEqual({
      amount: null,
      words: "too soon to say: nothing spent so far",
    });
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
    expect(pacingWords(10, 10.05, null)).toBe("Plans are made with the budget itself.");
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
