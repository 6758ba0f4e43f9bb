// @vitest-environment node
import { expect, test } from "vitest";

import type { BudgetStretch } from "../../api/types";
import { moment } from "../../format";
import { part } from "./sample";
import { briefTerms, stretchWords, termsOf } from "./terms";

const ENDS = Date.UTC(2026, 11, 1) / 1000;
const MONTH: BudgetStretch = {
  name: "2026-11",
  each: "month",
  usd: 4000,
  allowed_usd: 4000,
  rolled_usd: 0,
  spent_usd: 1200,
  left_usd: 2800,
  since: 0,
  ends: ENDS,
  rolls_over: false,
  used_up: false,
};

test("money for a month says what is spent of it, what is left, and until when", () => {
  expect(stretchWords(MONTH)).toBe(
    `It has $4,000.00 for this month (2026-11): $1,200.00 is spent, $2,800.00 left until ${moment(ENDS)}. What is left then is nobody’s.`,
  );
});

test("what an earlier quarter left, or spent too much, is said, and where the rest goes", () => {
  const quarter: BudgetStretch = { ...MONTH, each: "quarter", name: "2026-Q4", rolls_over: true };
  expect(stretchWords({ ...quarter, rolled_usd: 300 })).toMatch(
    /for this quarter \(2026-Q4\).*\$300\.00 of it was left by the quarter before\. What is left then, or owed, goes into the next quarter\.$/,
  );
  expect(stretchWords({ ...quarter, rolled_usd: -20 })).toContain(
    "$20.00 less than usual: the quarter before spent it.",
  );
});

test("a total that is used up says what its jobs do, which is another without borrowing", () => {
  const over = { spent_usd: 4001, left_usd: 0, used_up: true };
  const stretch: BudgetStretch = { ...MONTH, ...over, each: "once", name: "until 2027-03-31" };
  expect(termsOf(part("thesis", { stretch }))).toEqual([
    `It has $4,000.00 in total: $4,001.00 is spent, $1.00 more than that until ${moment(ENDS)}. It is used up. Its jobs run on what others leave, at the least that they need.`,
  ]);
  expect(termsOf(part("thesis", { stretch, borrows: false }))[0]).toMatch(/Its jobs wait\.$/);
  expect(briefTerms(part("thesis", { stretch }))[0]).toMatch(/^nothing left of \$4,000\.00 until/);
});

test("a hard cap and own money only are said, and usual terms are not", () => {
  const speech = part("speech", { max_spend_per_hour: 8, borrows: false });
  expect(termsOf(speech)).toEqual([
    "Hard cap: its jobs never hold more than $8.00/h at any moment. Those that would get fewer GPUs, or wait.",
    "It spends its own money only, and nothing of what others leave.",
  ]);
  expect(briefTerms(speech)).toEqual([
    "never above $8.00/h at any moment",
    "spends its own money only",
  ]);
  expect(termsOf(part("vision"))).toEqual([]);
  expect(briefTerms(part("vision"))).toEqual([]);
});
