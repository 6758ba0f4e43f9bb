/** What a job is at, in words and figures that move with the clock. */
import type { JobRow, Node } from "../../api/types";
import { duration } from "../../format";
import { hasEnded, type SeenJob } from "../../state/live";

/** What they cost per GPU and hour, by type, as far as nodes of it are rented. */
export function pricesOf(nodes: Iterable<Node>): ReadonlyMap<string, number> {
  const prices = new Map<string, number>();
  for (const node of nodes) prices.set(node.gpu_type, node.price);
  return prices;
}

/** Told, and grown since by what it holds. Never more than that: a job that moves may hold less. */
export function costNow(row: SeenJob, prices: ReadonlyMap<string, number>, now: number): number {
  const price = row.gpu_type === null ? undefined : prices.get(row.gpu_type);
  if (row.state !== "running" || price === undefined) return row.cost_usd;
  return row.cost_usd + (Math.max(0, now - row.told_at) / 3600) * row.width * price;
}

/** Seconds until its end as planned; null: nobody knows. A job that waits gets no nearer to it. */
export function leftNow(row: SeenJob, now: number): number | null {
  if (row.left_s === null || hasEnded(row.state)) return null;
  if (row.state !== "running") return row.left_s;
  return Math.max(0, row.left_s - Math.max(0, now - row.told_at));
}

/** It may take longer than planned; a job that is late ends at any moment. */
export function leftText(left: number): string {
  return left < 1 ? "any moment" : duration(left);
}

export function epochText(row: JobRow): string {
  return `${Math.min(row.epoch + 1, row.epochs)} of ${row.epochs.toLocaleString("en-US")}`;
}

/** How often it got other GPUs; its first start is none. */
export function rescaled(row: JobRow): number {
  return Math.max(0, row.rescalings - 1);
}

/** From its submission until now, or until it ended. */
export function ageOf(row: JobRow, now: number): number {
  return Math.max(0, (row.ended_at ?? now) - row.submitted_at);
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
