// @vitest-environment node
import { expect, test } from "vitest";

import { found, step, type Target } from "./found";

const target = (kind: string, name: string, also = ""): Target => {
  return { kind, name, also, href: `${kind} ${name}` };
};
const ALL = [
  target("view", "Jobs"),
  target("job 4", "bert-1", "bert running"),
  target("job 14", "resnet-4", "resnet18 running"),
  target("class", "bert"),
  target("node", "node 4", "A100"),
];
const names = (search: string) => found(ALL, search).map(({ name }) => name);

test("what is named so comes before what only has it in its name", () => {
  expect(names("bert")).toEqual(["bert", "bert-1"]);
  expect(names("4")[0]).toBe("bert-1");
});

test("all words have to be there, in any order", () => {
  expect(names("running bert")).toEqual(["bert-1"]);
  expect(names("node a100")).toEqual(["node 4"]);
  expect(names("bert a100")).toEqual([]);
});

test("nothing typed yet shows what there is, and each thing once", () => {
  expect(names("")).toHaveLength(ALL.length);
  expect(found([...ALL, ...ALL], "")).toHaveLength(ALL.length);
});

test("arrows go round the ends of the list", () => {
  expect([step(0, 3, "ArrowUp"), step(2, 3, "ArrowDown"), step(0, 3, "ArrowDown")]).toEqual([
    2, 0, 1,
  ]);
  expect([step(0, 0, "ArrowDown"), step(0, 3, "a")]).toEqual([null, null]);
});
