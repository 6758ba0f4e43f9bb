// @vitest-environment node
import { expect, test } from "vitest";

import { byType, holders, nodeTable, shareInUse, since, total } from "./model";
import { held, node } from "./sample";

const NODES = [
  node(3, { state: "releasing", released_at: 990 }),
  node(2, { held: held(2, ["41", 3]) }),
  node(5, { gpu_type: "A100", gpus: 8, price_per_hour: 27.2, held: held(5, ["41", 8]) }),
  node(1, { state: "requested", billed_from: null, ready_at: null }),
  node(4, { state: "gone" }),
];

test("nodes are grouped by type: ready ones first, then booting, then leaving ones", () => {
  const groups = byType(NODES);
  expect(groups.map((group) => group.gpuType)).toEqual(["A100", "T4"]);
  expect(groups[1]?.list.map((each) => each.id)).toEqual([2, 1, 3]);
});

test("what is not charged yet is booting, but neither rented nor paid for", () => {
  const [, t4] = byType(NODES);
  expect(t4).toMatchObject({ nodes: 3, rented: 8, used: 3, idle: 1, booting: 4, leaving: 4 });
  expect(t4?.usdPerHour).toBeCloseTo(8.8);
});

test("totals are the sums of all types", () => {
  const all = total(byType(NODES));
  expect(all).toMatchObject({ nodes: 4, rented: 16, used: 11, idle: 1, booting: 4 });
  expect(all.usdPerHour).toBeCloseTo(36);
  expect(shareInUse(all)).toBeCloseTo(11 / 16);
  expect(shareInUse(total([]))).toBeNull();
});

test("every GPU has a holder or none, and never more than the node has", () => {
  expect(holders(node(1, { held: held(1, ["7", 1], ["8", 2]) }))).toEqual(["7", "8", "8", null]);
  expect(holders(node(1, { held: held(1, ["7", 9]) }))).toEqual(["7", "7", "7", "7"]);
});

test("a state begins with what brought it about", () => {
  expect(NODES.slice(0, 4).map(since)).toEqual([990, 950, 950, 900]);
});

test("the table for CSV has a row per node, with who holds how many", () => {
  const [head, row] = nodeTable([node(2, { held: held(2, ["41", 3], ["42", 1]) })]);
  expect(row).toHaveLength(head?.length ?? 0);
  expect(row?.slice(0, 6)).toEqual([2, "T4", "ready", 4, 4, "41:3 42:1"]);
});
