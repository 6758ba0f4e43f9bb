/** Everything that the service shows, kept up to date by one stream; see `Live` of the API. */
import type { Client } from "../api/client";
import { messages } from "../api/sse";
import type { Budget, JobRow, JobState, Live, Node } from "../api/types";
import { pause } from "./pause";

export type Connection = "connecting" | "live" | "gone";

const SILENT_MS = 20_000;
const RETRY_MS = [500, 1000, 2000, 4000, 8000];
const MOST_ENDED = 500;
/** Ended jobs that are kept beside the active ones, so that one can see them end. */

/** A job, and the server's time when it was told: costs grow from there, what is left shrinks. */
export type SeenJob = JobRow & {
  told_at: number;
  /** When it was to end, of one that should have by now, whatever is told since. */
  due_at?: number;
};

export interface Picture {
  connection: Connection;
  /** How many have begun: between one and the next, something may have happened unseen. */
  streams: number;
  /** The server's time at `heardAt`, and how fast it runs. */
  now: number;
  heardAt: number;
  speed: number;
  version: string;
  /** Whether everything has been sent once. */
  complete: boolean;
  /** What a new stream has sent so far; null when that was all. */
  coming: Pick<Picture, "jobs" | "nodes"> | null;
  budget: Budget | null;
  plan: number | null;
  lastEvent: number;
  counts: Readonly<Record<string, number>>;
  jobs: ReadonlyMap<string, SeenJob>;
  /** Those that ended while we looked, newest last. */
  ended: ReadonlyMap<string, SeenJob>;
  nodes: ReadonlyMap<number, Node>;
}

export const NOTHING: Picture = {
  connection: "connecting",
  streams: 0,
  now: 0,
  heardAt: 0,
  speed: 1,
  version: "",
  complete: false,
  coming: null,
  budget: null,
  plan: null,
  lastEvent: 0,
  counts: {},
  jobs: new Map(),
  ended: new Map(),
  nodes: new Map(),
};

export const ENDED: readonly JobState[] = ["succeeded", "failed", "stopped"];

export function hasEnded(state: JobState): boolean {
  return ENDED.includes(state);
}

/** The picture after a message; nothing of the old one is changed. `fresh`: of a new stream. */
export function after(before: Picture, said: Live, heardAt: number, fresh: boolean): Picture {
  const next: Picture = {
    ...before,
    connection: "live",
    streams: before.streams + (fresh ? 1 : 0),
    now: said.now,
    heardAt,
    speed: said.speed ?? before.speed,
    version: said.version ?? before.version,
    budget: said.budget ?? before.budget,
    plan: said.plan === undefined ? before.plan : said.plan,
    lastEvent: said.last_event ?? before.lastEvent,
    counts: said.counts ?? before.counts,
  };
  if (fresh) next.coming = { jobs: new Map(), nodes: new Map() };
  if (said.jobs?.length) takeJobs(next, said.jobs);
  if (said.nodes?.length || said.gone?.length) takeNodes(next, said.nodes ?? [], said.gone ?? []);
  // Who comes back keeps what was there until all of the new is: nothing blinks.
  if (next.coming && (said.complete || !before.complete)) Object.assign(next, next.coming);
  if (said.complete) next.coming = null;
  next.complete = before.complete || said.complete;
  return next;
}

function takeNodes(next: Picture, rows: readonly Node[], gone: readonly number[]): void {
  const nodes = new Map((next.coming ?? next).nodes);
  for (const node of rows) nodes.set(node.id, node);
  for (const id of gone) nodes.delete(id);
  if (next.coming) next.coming = { ...next.coming, nodes };
  else next.nodes = nodes;
}

function takeJobs(next: Picture, rows: readonly JobRow[]): void {
  const jobs = new Map((next.coming ?? next).jobs);
  const ended = new Map(next.ended);
  for (const told of rows) {
    const row = { ...told, told_at: next.now, ...due(next.jobs.get(told.id), told, next.now) };
    if (hasEnded(row.state)) {
      jobs.delete(row.id);
      ended.set(row.id, row);
    } else {
      jobs.set(row.id, row);
      ended.delete(row.id);
    }
  }
  for (const id of ended.keys()) {
    if (ended.size <= MOST_ENDED) break;
    ended.delete(id);
  }
  if (next.coming) next.coming = { ...next.coming, jobs };
  else next.jobs = jobs;
  next.ended = ended;
}

/** A job that is late has nothing left at each report: since when that is so must not be lost. */
function due(was: SeenJob | undefined, told: JobRow, now: number): { due_at?: number } {
  if (told.state !== "running" || told.left_s === null || told.left_s >= 1) return {};
  const before = was?.left_s != null && was.state === "running" ? was.told_at + was.left_s : now;
  return { due_at: Math.min(was?.due_at ?? now, before, now) };
}

/** Holds the picture and the stream that feeds it. */
export class LiveStore {
  picture: Picture = NOTHING;
  private readonly listeners = new Set<() => void>();
  private running: AbortController | null = null;

  constructor(private readonly client: Client) {}

  start(): () => void {
    this.running?.abort();
    const running = new AbortController();
    this.running = running;
    void this.run(running.signal);
    return () => running.abort();
  }

  /** Forget all of it: whoever looks now may be somebody else. */
  clear(): void {
    this.picture = NOTHING;
    this.tell();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  private async run(signal: AbortSignal): Promise<void> {
    const over = () => signal.aborted;
    let failures = 0;
    while (!over()) {
      try {
        await this.listen(signal, () => (failures = 0));
      } catch {
        // Whatever it was, the answer is the same: say so, and try again.
      }
      if (over()) return;
      this.picture = { ...this.picture, connection: "gone" };
      this.tell();
      await pause(RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)] ?? 8000, signal);
    }
  }

  /** One stream, until it breaks off or says nothing for too long. */
  private async listen(signal: AbortSignal, heard: () => void): Promise<void> {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENT_MS);
    const both = AbortSignal.any([signal, silence.signal]);
    let fresh = true;
    try {
      for await (const message of messages(this.client.text("/live", "text/event-stream", both))) {
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENT_MS);
        const said = JSON.parse(message.data) as Live;
        this.picture = after(this.picture, said, performance.now(), fresh);
        fresh = false;
        heard();
        this.tell();
      }
    } finally {
      clearTimeout(timer);
    }
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}

/** The server's time at this moment. */
export function serverNow(picture: Picture, at = performance.now()): number {
  if (!picture.heardAt) return 0;
  const passed = picture.connection === "live" ? (at - picture.heardAt) / 1000 : 0;
  return picture.now + passed * picture.speed;
}
