/** Nodes as the cluster view shows them: by type, summed up, and as rows of figures. */
import type { Node } from "../../api/types";

export interface Sums {
  nodes: number;
  /** GPUs that are paid for, whatever their state. */
  rented: number;
  used: number;
  /** Ready, and no job holds them. */
  idle: number;
  booting: number;
  leaving: number;
  usdPerHour: number;
}

export interface TypeGroup extends Sums {
  gpuType: string;
  /** Ready ones first, then those that boot, then those that leave; each by number. */
  list: Node[];
}

const NONE: Sums = {
  nodes: 0,
  rented: 0,
  used: 0,
  idle: 0,
  booting: 0,
  leaving: 0,
  usdPerHour: 0,
};
const RANK: Record<Node["state"], number> = { ready: 0, requested: 1, releasing: 2, gone: 3 };

/** By name of the type. */
export function byType(nodes: Iterable<Node>): TypeGroup[] {
  const groups = new Map<string, TypeGroup>();
  for (const node of nodes) {
    if (node.state === "gone") continue;
    let group = groups.get(node.gpu_type);
    if (!group) groups.set(node.gpu_type, (group = { ...NONE, gpuType: node.gpu_type, list: [] }));
    group.list.push(node);
    count(group, node);
  }
  for (const { list } of groups.values()) {
    list.sort((a, b) => RANK[a.state] - RANK[b.state] || a.id - b.id);
  }
  return [...groups.values()].sort((a, b) => a.gpuType.localeCompare(b.gpuType));
}

function count(sums: Sums, node: Node): void {
  const paid = node.billed_from !== null;
  sums.nodes += 1;
  sums.used += node.used_gpus;
  if (paid) sums.rented += node.gpus;
  if (paid) sums.usdPerHour += node.price_per_hour;
  if (node.state === "ready") sums.idle += node.gpus - node.used_gpus;
  if (node.state === "requested") sums.booting += node.gpus;
  if (node.state === "releasing") sums.leaving += node.gpus;
}

export function total(groups: readonly Sums[]): Sums {
  const all = { ...NONE };
  for (const group of groups) {
    for (const key of Object.keys(NONE) as (keyof Sums)[]) all[key] += group[key];
  }
  return all;
}

/** Part of the paid GPUs that jobs hold; null where none are paid for. */
export function shareInUse({ used, rented }: Sums): number | null {
  return rented > 0 ? Math.min(1, used / rented) : null;
}

/** Who holds each of a node's GPUs; null: nobody. Which GPU is whose is not told: in order. */
export function holders(node: Node): (string | null)[] {
  const cells: (string | null)[] = [];
  for (const { job, gpus } of node.held) {
    for (let i = 0; i < gpus && cells.length < node.gpus; i++) cells.push(job);
  }
  while (cells.length < node.gpus) cells.push(null);
  return cells;
}

/** When the state that it is in began. */
export function since(node: Node): number {
  if (node.state === "releasing") return node.released_at ?? node.requested_at;
  if (node.state === "ready") return node.ready_at ?? node.requested_at;
  return node.requested_at;
}

/** What a node is about, for people who have not read of its states. */
export function stateWords(node: Node): string {
  const words = {
    requested: "booting",
    ready: "ready",
    releasing: "being given back",
    gone: "gone",
  };
  return node.state === "ready" && node.draining ? "draining" : words[node.state];
}

const HEAD = [
  "node",
  "gpu_type",
  "state",
  "gpus",
  "used_gpus",
  "jobs",
  "price (USD per hour)",
  "requested (Unix s)",
  "ready (Unix s)",
  "released (Unix s)",
  "empty since (Unix s)",
  "address",
  "reason",
];

export function nodeTable(nodes: readonly Node[]): (string | number | null)[][] {
  const rows = nodes.map((node) => [
    node.id,
    node.gpu_type,
    node.state,
    node.gpus,
    node.used_gpus,
    node.held.map(({ job, gpus }) => `${job}:${gpus}`).join(" "),
    node.price_per_hour,
    node.requested_at,
    node.ready_at,
    node.released_at,
    node.empty_since,
    node.address,
    node.reason,
  ]);
  return [HEAD, ...rows];
}
