// @vitest-environment node
import { expect, test } from "vitest";

import {
  colorsOf,
  depthsOf,
  loanText,
  loanWords,
  paidFor,
  payerOf,
  paysFor,
  scaleOf,
  spendWords,
  streamsWithin,
  withinTeam,
} from "./model";
import { part } from "./sample";

const TREE = [
  part("vision", { max_per_hour: 30 }),
  part("research", { above: "vision", classes: ["resnet50"] }),
  part("eve", { above: "research", classes: ["vit"] }),
  part("speech", { classes: ["deepspeech2"] }),
];

test("each stands below the one that it is a part of", () => {
  expect([...depthsOf(TREE)]).toEqual([
    ["vision", 0],
    ["research", 1],
    ["eve", 2],
    ["speech", 0],
  ]);
  expect(withinTeam(TREE, "vision").map(({ name }) => name)).toEqual(["vision", "research", "eve"]);
  expect(withinTeam(TREE, "speech")).toHaveLength(1);
  expect(withinTeam(TREE, "nobody")).toEqual([]);
});

test("a class has one payer, the innermost, or none", () => {
  expect(payerOf(TREE, "vit")).toBe("eve");
  expect(payerOf(TREE, "bert")).toBeNull();
  expect(payerOf(undefined, "bert")).toBeNull();
  expect(streamsWithin(TREE, "vision", [])).toEqual(["resnet50", "vit"]);
});

test("a part has its team's colour, and every team its own", () => {
  const colors = TREE.map(({ name }) => colorsOf(TREE).get(name));
  expect(colors).toEqual(["var(--c1)", "var(--c1)", "var(--c1)", "var(--c2)"]);
});

test("all bars are drawn to the same scale, in which every mark has its place", () => {
  expect(scaleOf(TREE)).toBe(30);
  expect(scaleOf([part("idle", { budget_per_hour: 0, right_now_per_hour: 0 })])).toBeGreaterThan(0);
});

test.each([
  [{ spend_now_per_hour: 10 }, "leaves $5.00/h of the guaranteed $15.00/h, which others may have"],
  [{ spend_now_per_hour: 0 }, "leaves all of the guaranteed $15.00/h, which others may have"],
  [
    { spend_now_per_hour: 0, lends: false },
    "leaves all of the guaranteed $15.00/h, which stays unspent",
  ],
  [{ spend_now_per_hour: 15.1 }, "spends what it is guaranteed, $15.00/h"],
  [
    { spend_now_per_hour: 20 },
    "spends $5.00/h more than the guaranteed $15.00/h, of what others leave",
  ],
  [{ budget_per_hour: 0, spend_now_per_hour: 3 }, "spends what others leave"],
  [{ budget_per_hour: 0, spend_now_per_hour: 0 }, "is guaranteed nothing, and spends nothing"],
  [
    { spend_now_per_hour: 35, max_per_hour: 30 },
    "spends $5.00/h more than its ceiling, which holds on average: it gets less until the average is kept",
  ],
])("what a team spends is said beside its right: %o", (with_, words) => {
  expect(spendWords(part("vision", with_))).toBe(words);
});

test("a loan is said with what it changes, and in no word where there is none", () => {
  expect(loanWords(part("vision"))).toBe("");
  expect(loanText(part("vision"))).toBe("–");
  const lent = part("vision", { lent_usd: 12, right_now_per_hour: 15.5 });
  expect(loanWords(lent)).toBe("has lent $12.00: until it is back, $15.50/h is guaranteed");
  expect(loanText(lent)).toBe("lent $12.00");
  const owes = part("vision", { lent_usd: -3 });
  expect(loanWords(owes)).toBe("owes $3.00");
  expect(loanText(owes)).toBe("owes $3.00");
  const keeps = part("vision", { lent_usd: 5, lends: false, right_now_per_hour: 16 });
  expect(loanWords(keeps)).toBe("has not spent $5.00: until it is, $16.00/h is guaranteed");
  expect(loanText(keeps)).toBe("kept $5.00");
});

test("a part that is for some people pays for their jobs, whatever the class", () => {
  const people = [
    part("cats", { teams: ["cats"], users: ["eve"] }),
    part("thesis", { above: "cats", classes: ["bert"] }),
    part("speech", { classes: ["bert"] }),
  ];
  expect(payerOf(people, "bert")).toBe("speech");
  expect(streamsWithin(people, "cats", ["bert", "bert@thesis", "vit@cats"])).toEqual([
    "bert@thesis",
    "vit@cats",
  ]);
  expect(paysFor(people, "cats", { class: "bert", payer: "thesis" })).toBe(true);
  expect(paysFor(people, "cats", { class: "bert", payer: null })).toBe(false);
  expect(people.map(paidFor)).toEqual(["eve, team cats", "bert", "bert"]);
});
