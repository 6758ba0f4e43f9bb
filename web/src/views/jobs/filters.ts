/** Which jobs to list and in which order: as the address keeps it, and as the service is asked. */
import type { JobRow, JobState } from "../../api/types";
import type { Order } from "../../parts/Table";
import { ENDED } from "../../state/live";

export const ACTIVE: readonly JobState[] = [
  "waiting",
  "starting",
  "running",
  "rescaling",
  "preempted",
];
export const PAGE = 200;
const LONGEST_SEARCH = 200;
/** The service takes no longer one. */

export interface Filters {
  /** None: any. */
  states: readonly JobState[];
  /** Empty: any. */
  jobClass: string;
  search: string;
  /** Ended ones too. */
  ended: boolean;
  order: Order;
}

export const NEWEST: Order = { key: "id", down: true };

export function fromQuery(query: string): Filters {
  const asked = new URLSearchParams(query);
  const named = (asked.get("state") ?? "").split(",");
  const states = [...ACTIVE, ...ENDED].filter((state) => named.includes(state));
  const sort = asked.get("sort") ?? "";
  const key = sort.replace(/^-/, "");
  return {
    states,
    jobClass: asked.get("class") ?? "",
    search: asked.get("search") ?? "",
    ended: asked.has("ended") || states.some((state) => ENDED.includes(state)),
    order: key ? { key, down: sort.startsWith("-") } : NEWEST,
  };
}

/** Only what is other than usual. */
export function toQuery({ states, jobClass, search, ended, order }: Filters): string {
  const parts = new URLSearchParams();
  if (states.length > 0) parts.set("state", states.join(","));
  if (jobClass) parts.set("class", jobClass);
  if (search) parts.set("search", search);
  if (ended) parts.set("ended", "1");
  if (order.key !== NEWEST.key || order.down !== NEWEST.down) {
    parts.set("sort", (order.down ? "-" : "") + order.key);
  }
  return parts.toString().replaceAll("%2C", ",");
}

/** Another press on a state takes it out again. */
export function toggled(filters: Filters, state: JobState): Filters {
  const states = filters.states.includes(state)
    ? filters.states.filter((each) => each !== state)
    : [...filters.states, state];
  return { ...filters, states, ended: filters.ended || ENDED.includes(state) };
}

/** Without ended jobs there is nothing to choose among their states. */
export function withEnded(filters: Filters, ended: boolean): Filters {
  const states = ended ? filters.states : filters.states.filter((each) => ACTIVE.includes(each));
  return { ...filters, ended, states };
}

/** The path of the next page of ended jobs; null: none of them is wanted. */
export function endedPath(filters: Filters, before: number | null): string | null {
  if (!filters.ended) return null;
  const states = filters.states.filter((state) => ENDED.includes(state));
  if (filters.states.length > 0 && states.length === 0) return null;
  const parts = new URLSearchParams({ all: "true", limit: String(PAGE) });
  parts.set("state", (states.length > 0 ? states : ENDED).join(","));
  if (filters.jobClass) parts.set("class", filters.jobClass);
  if (filters.search.trim()) parts.set("search", filters.search.trim().slice(0, LONGEST_SEARCH));
  if (before !== null) parts.set("before", String(before));
  return `/jobs?${parts.toString()}`;
}

export interface Chosen<Row> {
  rows: Row[];
  /** By state, of those that class and search let through. */
  counts: Partial<Record<JobState, number>>;
}

export function chosen<Row extends JobRow>(jobs: Iterable<Row>, filters: Filters): Chosen<Row> {
  const needle = filters.search.trim().toLowerCase();
  const states = new Set(filters.states);
  const rows: Row[] = [];
  const counts: Partial<Record<JobState, number>> = {};
  for (const row of jobs) {
    if (filters.jobClass && row.class !== filters.jobClass) continue;
    if (needle && !says(row, needle)) continue;
    counts[row.state] = (counts[row.state] ?? 0) + 1;
    if (states.size === 0 || states.has(row.state)) rows.push(row);
  }
  return { rows, counts };
}

function says(row: JobRow, needle: string): boolean {
  return (
    row.name.toLowerCase().includes(needle) ||
    row.class.toLowerCase().includes(needle) ||
    row.id.includes(needle)
  );
}

/** Each job once: what is active now, else as it was seen to end, else as it was stored. */
export function merged<Row extends JobRow>(
  active: ReadonlyMap<string, Row>,
  seen: ReadonlyMap<string, Row>,
  stored: Iterable<Row>,
): Row[] {
  const all = new Map(active);
  for (const row of seen.values()) if (!all.has(row.id)) all.set(row.id, row);
  for (const row of stored) if (!all.has(row.id)) all.set(row.id, row);
  return [...all.values()];
}

export function classesOf(jobs: Iterable<JobRow>): string[] {
  const names = new Set<string>();
  for (const row of jobs) names.add(row.class);
  return [...names].sort();
}
