/** What a job is at, in words and figures that move with the clock. */
import type { JobRow, Node } from "../../api/types";
import { duration, moment, whole } from "../../format";
import { hasEnded, type SeenJob } from "../../state/live";

type Nodes = ReadonlyMap<number, Node>;
type Prices = ReadonlyMap<string, number>;
const PRICES = new WeakMap<Nodes, Prices>();

/** What they cost per GPU and hour, by type, as far as nodes of it are rented. Made once for the same
 * nodes: whoever sorts asks for every job. */
export function pricesOf(nodes: Nodes): Prices {
  const known = PRICES.get(nodes);
  if (known) return known;
  const prices = new Map([...nodes.values()].map((node) => [node.gpu_type, node.price]));
  PRICES.set(nodes, prices);
  return prices;
}

/** Told, and grown since by what it holds. Never more than that: a job that moves may hold less. */
export function costNow(row: SeenJob, prices: ReadonlyMap<string, number>, now: number): number {
  const price = row.gpu_type === null ? undefined : prices.get(row.gpu_type);
  if (row.state !== "running" || price === undefined) return row.cost_usd;
  return row.cost_usd + (Math.max(0, now - row.told_at) / 3600) * row.width * price;
}

const MOMENT_S = 60;

/** Seconds until its end as planned, less than none where it is late; null: nobody knows. A job that
 * waits gets no nearer to it. */
export function leftNow(row: SeenJob, now: number): number | null {
  if (row.left_s === null || hasEnded(row.state)) return null;
  if (row.state !== "running") return row.left_s;
  const left = row.left_s - Math.max(0, now - row.told_at);
  return row.due_at === undefined ? left : Math.min(left, row.due_at - now);
}

/** What the rest costs: it shrinks with the time that is left. */
export function leftUsdNow(row: SeenJob, now: number): number | null {
  const left = leftNow(row, now);
  if (row.left_usd === null || row.left_s === null || left === null || isLate(left)) return null;
  return row.left_s > 0 ? row.left_usd * Math.max(0, left / row.left_s) : row.left_usd;
}

/** Whether it takes longer than was planned, and nobody knows how long. */
export function isLate(left: number): boolean {
  return left < -MOMENT_S;
}

export function leftText(left: number): string {
  if (isLate(left)) return "later than planned";
  return left < 1 ? "any moment" : duration(left);
}

/** As far as anybody knows. */
export function endText(left: number, now: number): string {
  return isLate(left)
    ? "it should have ended by now"
    : `ends about ${moment(now + Math.max(0, left))}`;
}

export function epochText(row: JobRow): string {
  return `${Math.min(row.epoch + 1, row.epochs)} of ${whole(row.epochs)}`;
}

/** The three figures of a job's time, in seconds. Two of them add up to the third. */
export interface JobTimes {
  onGpus: number;
  waiting: number;
  sinceSubmission: number;
}

/** Told, and grown since by the one that grows. */
export function timesOf(row: SeenJob, now: number): JobTimes {
  const grown = hasEnded(row.state) ? 0 : Math.max(0, now - row.told_at);
  const onGpus = (row.on_gpus_s ?? 0) + (row.holds_gpus ? grown : 0);
  const waiting = (row.waiting_s ?? 0) + (row.holds_gpus ? 0 : grown);
  return { onGpus, waiting, sinceSubmission: onGpus + waiting };
}

/** "On GPUs 12 min, waiting 3 s, since submission 12.1 min" */
export function timesText({ onGpus, waiting, sinceSubmission }: JobTimes): string {
  return `On GPUs ${duration(onGpus)}, waiting ${duration(waiting)}, since submission ${duration(sinceSubmission)}`;
}

const REASONS: Readonly<Record<string, string>> = {
  new: "Waits for its first GPUs.",
  moving: "Moves to other GPUs: it saves its state, and goes on there.",
  "GPUs are short": "GPUs are short: it waits for some.",
  "stop requested": "Was asked to stop, and has its grace time to save its state.",
};

const STATES: Readonly<Record<JobRow["state"], string>> = {
  waiting: "Waits for GPUs.",
  starting: "Its processes are starting.",
  running: "Training.",
  preempted: "Another job has its GPUs. It goes on from its checkpoint when there are some again.",
  rescaling: "Moves to other GPUs, and goes on from its checkpoint.",
  succeeded: "Done.",
  failed: "Failed.",
  stopped: "Was stopped.",
};

/** Why a job is in its state, as a sentence. */
export function reasonOf(row: JobRow): string {
  if (row.stop_requested && !hasEnded(row.state)) return REASONS["stop requested"] ?? "";
  if (!row.reason) return STATES[row.state];
  const words = REASONS[row.reason];
  if (words) return words;
  return `${capital(row.reason)}.`;
}

export function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
