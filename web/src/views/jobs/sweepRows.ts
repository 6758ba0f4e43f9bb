/** Jobs of a sweep as one line of the list, and one by one where somebody opens it. */
import type { JobState, SweepRow } from "../../api/types";
import { figure, plural } from "../../format";
import { sorted, type Column, type Order } from "../../parts/Table";
import { ENDED, hasEnded, type SeenJob } from "../../state/live";

/** What a line says of a sweep beside what it says of jobs. */
export interface Group {
  jobs: number;
  states: Readonly<Record<string, number>>;
  metric: string;
  best: SweepRow["best"];
  /** Those in the list, as far as filters let them through. */
  members: readonly SeenJob[];
  open: boolean;
}

/** A line of the list: a job, or a sweep. */
export type ListRow = SeenJob & {
  group?: Group;
  /** Of one that stands under its sweep: what its name says beside the sweep's. */
  inside?: string;
};

const ORDER: readonly JobState[] = [
  ...(["running", "rescaling", "starting", "waiting", "preempted"] as const),
  ...(["succeeded", "stopped", "failed"] as const),
];

/** In order, each sweep in one line, followed by its jobs where it is open. */
export function inOneLine(
  jobs: readonly SeenJob[],
  sweeps: readonly SweepRow[],
  open: ReadonlySet<string>,
  columns: readonly Column<ListRow>[],
  order: Order,
): ListRow[] {
  const known = new Map(sweeps.map((sweep) => [sweep.id, sweep]));
  const members = new Map<string, SeenJob[]>();
  const alone: ListRow[] = [];
  for (const job of jobs) {
    if (!job.sweep) alone.push(job);
    else if (members.has(job.sweep)) members.get(job.sweep)?.push(job);
    else members.set(job.sweep, [job]);
  }
  const lines = [...members].map(([name, of]) => line(name, of, known.get(name), open.has(name)));
  return sorted([...alone, ...lines], columns, order).flatMap((row) =>
    row.group?.open ? [row, ...inside(row.name, row.group.members, columns, order)] : [row],
  );
}

function inside(
  name: string,
  members: readonly SeenJob[],
  columns: readonly Column<ListRow>[],
  order: Order,
): ListRow[] {
  return sorted(members, columns, order).map((job) => ({
    ...job,
    inside: job.name.startsWith(`${name} `) ? job.name.slice(name.length + 1) : job.name,
  }));
}

/** `told`: what the service says of all of it; without, what can be seen. */
function line(
  id: string,
  members: readonly SeenJob[],
  told: SweepRow | undefined,
  open: boolean,
): ListRow {
  const newest = members.reduce((one, other) => (Number(other.id) > Number(one.id) ? other : one));
  const states = told?.states ?? counted(members);
  const jobs = told?.jobs ?? members.length;
  const active = members.filter((job) => !hasEnded(job.state));
  const holding = active.filter((job) => job.width > 0);
  return {
    ...newest,
    id,
    name: told?.name ?? newest.class,
    state: stateOf(states),
    width: sum(holding, (job) => job.width),
    gpu_type: [...new Set(holding.map((job) => job.gpu_type))].join("+") || null,
    epoch: Math.max(...members.map((job) => job.epoch)),
    submitted_at: told?.submitted_at ?? newest.submitted_at,
    ended_at: told?.ended_at ?? null,
    rescalings: sum(members, (job) => job.rescalings),
    restarts: sum(members, (job) => job.restarts),
    cost_usd: told?.cost_usd ?? sum(members, (job) => job.cost_usd),
    done: (ended(states) + sum(active, (job) => job.done ?? 0)) / jobs,
    left_s: longest(active.map((job) => job.left_s)),
    left_usd: null,
    group: { jobs, states, members, open, metric: told?.metric ?? "", best: told?.best ?? null },
  };
}

function counted(members: readonly SeenJob[]): Record<string, number> {
  const found: Record<string, number> = {};
  for (const { state } of members) found[state] = (found[state] ?? 0) + 1;
  return found;
}

/** Of all of it: what the most active one is at. */
function stateOf(states: Readonly<Record<string, number>>): JobState {
  return ORDER.find((state) => (states[state] ?? 0) > 0) ?? "waiting";
}

function ended(states: Readonly<Record<string, number>>): number {
  return ENDED.reduce((all, state) => all + (states[state] ?? 0), 0);
}

function sum(jobs: readonly SeenJob[], value: (job: SeenJob) => number): number {
  return jobs.reduce((all, job) => all + value(job), 0);
}

function longest(left: readonly (number | null)[]): number | null {
  const known = left.filter((one) => one !== null);
  return known.length > 0 && known.length === left.length ? Math.max(...known) : null;
}

/** 27 jobs: 9 running, 18 stopped. */
export function statesText({ jobs, states }: Pick<Group, "jobs" | "states">): string {
  const parts = ORDER.filter((state) => states[state]).map((state) => `${states[state]} ${state}`);
  return `${plural(jobs, "job")}: ${parts.join(", ")}`;
}

/** 9 of 27 active: where there is little room. */
export function activeText({ jobs, states }: Pick<Group, "jobs" | "states">): string {
  const active = jobs - ended(states);
  return active > 0 ? `${active} of ${jobs} active` : plural(jobs, "job");
}

/** Best loss 0.12: where there is little room. */
export function bestValue({ best, metric }: Pick<Group, "best" | "metric">): string {
  const value = best?.value ?? null;
  return value === null ? "" : `best ${metric} ${figure(value)}`;
}

/** Best loss 0.12 (lr=1e-4 seed=1); empty: nobody knows yet. */
export function bestText({ best, metric }: Pick<Group, "best" | "metric">): string {
  const value = bestValue({ best, metric });
  return best === null || !value ? "" : `${value} (${drawnText(best.parameters)})`;
}

export function drawnText(parameters: Readonly<Record<string, string>>): string {
  return Object.entries(parameters)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

/** What to sort by where numbers of jobs are meant: a sweep stands where its newest job would. */
export function newestId(row: ListRow): number {
  return Math.max(...(row.group?.members ?? [row]).map((job) => Number(job.id)));
}
