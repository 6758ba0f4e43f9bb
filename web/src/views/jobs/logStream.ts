/** A worker's log, followed over broken connections and restarts of the service. */
import { ApiError, isAbort, type Client } from "../../api/client";
import type { JobDetails } from "../../api/types";
import { hasEnded } from "../../state/live";
import { MOST_LINES } from "./logBuffer";

const AGAIN_MS = 1500;

export interface LogPlace {
  job: string;
  rank: number;
  /** The byte to go on with; null: begin with the last lines. */
  skip: number | null;
}

export function logPath({ job, rank, skip }: LogPlace, follow: boolean): string {
  const asked = new URLSearchParams({ rank: String(rank), follow: String(follow) });
  if (skip === null) asked.set("tail", String(MOST_LINES));
  else asked.set("skip", String(skip));
  return `/jobs/${encodeURIComponent(job)}/logs?${asked.toString()}`;
}

export interface Follower {
  text: (piece: string) => void;
  /** The service does not answer, or does again. */
  waiting: (waiting: boolean) => void;
}

/** Until the job has ended or `signal` says so; `place.skip` is kept up to date. */
export async function followLog(
  client: Client,
  place: LogPlace,
  signal: AbortSignal,
  to: Follower,
): Promise<void> {
  const over = () => signal.aborted;
  const decoder = new TextDecoder(); // keeps half a letter until the rest of it is there
  while (!over()) {
    try {
      const [headers, pieces] = await client.bytes(logPath(place, true), signal);
      to.waiting(false);
      place.skip ??= Number(headers.get("boa-log-offset") ?? 0);
      for await (const piece of pieces) {
        place.skip += piece.length;
        to.text(decoder.decode(piece, { stream: true }));
      }
      const { job } = await client.get<{ job: JobDetails }>(`/jobs/${place.job}`, signal);
      if (hasEnded(job.state)) return;
    } catch (problem) {
      if (over() || isAbort(problem)) return;
      if (problem instanceof ApiError && problem.status < 500) throw problem;
      to.waiting(true);
    }
    await pause(AGAIN_MS, signal);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener("abort", end, { once: true });
  });
}

/** All of it, as a file. */
export async function wholeLog(client: Client, job: string, rank: number): Promise<Blob> {
  const [, pieces] = await client.bytes(
    logPath({ job, rank, skip: 0 }, false),
    new AbortController().signal,
  );
  const parts: BlobPart[] = [];
  for await (const piece of pieces) parts.push(piece as Uint8Array<ArrayBuffer>);
  return new Blob(parts, { type: "text/plain" });
}

/** How many workers may have a log: one per GPU, unless something else starts them. */
export function workersOf(launcher: unknown, widths: readonly number[]): number {
  if (launcher === "single" || launcher === "torchrun") return 1;
  return Math.max(1, ...widths);
}
