/** Events by what they are about, and which of them are wanted. */
import type { Event, EventPart } from "../../api/types";
import { csv } from "../../charts/data";
import { duration, whole } from "../../format";

export type Group = "jobs" | "nodes" | "money" | "trouble";

export const GROUPS: readonly (readonly [Group, string])[] = [
  ["jobs", "Jobs"],
  ["nodes", "Nodes"],
  ["money", "Money and plans"],
  ["trouble", "Trouble"],
];

const KINDS: Readonly<Record<Exclude<Event["kind"], "other">, Group>> = {
  submitted: "jobs",
  started: "jobs",
  rescaled: "jobs",
  stop: "jobs",
  stopped: "jobs",
  succeeded: "jobs",
  paused: "jobs",
  resumed: "jobs",
  changed: "jobs",
  limit: "trouble",
  deadline: "trouble",
  node_rented: "nodes",
  node_ready: "nodes",
  node_released: "nodes",
  node_gone: "nodes",
  planned: "money",
  budget: "money",
  period: "money",
  used_up: "money",
  trouble: "trouble",
  failed: "trouble",
  retry: "trouble",
  preempted: "trouble",
  restarted: "trouble",
  shortage: "trouble",
  node_leaving: "trouble",
  node_lost: "trouble",
  orphan: "trouble",
  clock: "trouble",
};

/** Of a kind that the service, or this page, does not know: by what it names. */
export function groupOf(event: Event): Group {
  const known = (KINDS as Readonly<Partial<Record<string, Group>>>)[event.kind];
  if (known) return known;
  if (event.job !== null) return "jobs";
  return event.node !== null ? "nodes" : "money";
}

const WORDS: Readonly<Record<string, string>> = {
  planned: "new plan",
  stop: "to stop",
  retry: "tries again",
  orphan: "stray node",
};

export function kindWords(kind: string): string {
  return WORDS[kind] ?? kind.replaceAll("_", " ");
}

export interface EventFilters {
  /** None: all. */
  groups: readonly Group[];
  search: string;
}

export function fromQuery(query: string): EventFilters {
  const asked = new URLSearchParams(query);
  const named = (asked.get("group") ?? "").split(",");
  const groups = GROUPS.map(([group]) => group).filter((group) => named.includes(group));
  return { groups, search: asked.get("search") ?? "" };
}

export function toQuery({ groups, search }: EventFilters): string {
  const parts = new URLSearchParams();
  if (groups.length > 0) parts.set("group", groups.join(","));
  if (search) parts.set("search", search);
  return parts.toString().replaceAll("%2C", ",");
}

export function toggled(filters: EventFilters, group: Group): EventFilters {
  const groups = filters.groups.includes(group)
    ? filters.groups.filter((each) => each !== group)
    : [...filters.groups, group];
  return { ...filters, groups };
}

export interface Found {
  /** Newest first. */
  events: Event[];
  /** Of those that the search lets through. */
  counts: Record<Group, number>;
}

export function found(events: readonly Event[], { groups, search }: EventFilters): Found {
  const needle = search.trim().toLowerCase();
  const wanted = new Set(groups);
  const counts = { jobs: 0, nodes: 0, money: 0, trouble: 0 };
  const fitting: Event[] = [];
  for (const event of events.toReversed()) {
    if (needle && !`${event.text} ${kindWords(event.kind)}`.toLowerCase().includes(needle))
      continue;
    const group = groupOf(event);
    counts[group] += 1;
    if (wanted.size === 0 || wanted.has(group)) fitting.push(event);
  }
  return { events: fitting, counts };
}

/** What the file will have of all that ever happened: not every event is loaded, or fits. */
export function saveWords(count: number, all: number): string {
  const some = count < all ? `${whole(count)} of ${whole(all)}` : `all ${whole(count)}`;
  return count === 0 ? "Save as CSV" : `Save ${some} as CSV`;
}

export function eventsCsv(events: readonly Event[]): string {
  const rows = events.map((event) => [
    event.number,
    new Date(event.at * 1000).toISOString(),
    event.kind,
    event.job,
    event.node,
    event.text,
  ]);
  return csv([["number", "time (UTC)", "kind", "job", "node", "text"], ...rows]);
}

/** A time is worded here: events of before the style was one are stored as they were said. */
export function shownText({ text, seconds }: EventPart): string {
  return seconds === undefined ? text : duration(seconds);
}
