/** A worker's log, followed over broken connections and restarts of the service. */
import { ApiError, isAbort, type Client } from "../../api/client";
import { pause } from "../../state/pause";
import { MOST_LINES } from "./logBuffer";

const AGAIN_MS = 1000;

const PATIENCE_MS = 35_000;

export interface LogPlace {
  job: string;
  rank: number;
  /** The byte to go on with; null: begin with the last lines. */
  skip: number | null;
  /** Keeps half a letter until the rest of it is there. */
  decoder?: TextDecoder;
}

/** Where `skip` is past what is kept of the log, the answer has its last lines instead. */
export function logPath({ job, rank, skip }: LogPlace): string {
  const asked = new URLSearchParams({ rank: String(rank), tail: String(MOST_LINES) });
  if (skip !== null) asked.set("skip", String(skip));
  return `/jobs/${encodeURIComponent(job)}/logs?${asked.toString()}`;
}

export interface Follower {
  text: (piece: string) => void;
  /** What follows does not go on from what was there: the log has been cut at its beginning. */
  anew: () => void;
  /** The service does not answer, or does again. */
  waiting: (waiting: boolean) => void;
  /** Whether the job has: then one more look finds all that it printed. */
  ended: () => boolean;
}

/**
 * Until the job has ended or `signal` says so; `place` is kept up to date. By short questions: an
 * answer that goes on would keep one of the browser's few connections to the service.
 */
export async function followLog(
  client: Client,
  place: LogPlace,
  signal: AbortSignal,
  to: Follower,
): Promise<void> {
  const over = () => signal.aborted;
  while (!over()) {
    const last = to.ended();
    try {
      await look(client, place, signal, to);
      if (last) return;
    } catch (problem) {
      if (over() || isAbort(problem)) return;
      if (problem instanceof ApiError && problem.status < 500) throw problem;
      to.waiting(true);
    }
    await pause(AGAIN_MS, signal);
  }
}

/** What has been printed since. */
async function look(
  client: Client,
  place: LogPlace,
  signal: AbortSignal,
  to: Follower,
): Promise<void> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]);
  const [headers, pieces] = await client.bytes(logPath(place), limit);
  to.waiting(false);
  const offset = Number(headers.get("boa-log-offset") ?? 0);
  if (place.skip !== null && place.skip !== offset) to.anew();
  if (place.skip !== offset) place.decoder = new TextDecoder();
  place.skip = offset;
  place.decoder ??= new TextDecoder();
  for await (const piece of pieces) {
    if (signal.aborted) return; // somebody else goes on from here
    place.skip += piece.length;
    to.text(place.decoder.decode(piece, { stream: true }));
  }
}

/** All of it, as a file. */
export async function wholeLog(client: Client, job: string, rank: number): Promise<Blob> {
  const path = `/jobs/${encodeURIComponent(job)}/logs?rank=${rank}`;
  const [, pieces] = await client.bytes(path, new AbortController().signal);
  const parts: BlobPart[] = [];
  for await (const piece of pieces) parts.push(piece as Uint8Array<ArrayBuffer>);
  return new Blob(parts, { type: "text/plain" });
}

/** How many workers may have a log: one per GPU, unless something else starts them. */
export function workersOf(launcher: unknown, widths: readonly number[]): number {
  if (launcher === "single" || launcher === "torchrun") return 1;
  return Math.max(1, ...widths);
}
