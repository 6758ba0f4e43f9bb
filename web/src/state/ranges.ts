/** How far back one looks, and the questions of the past that move with the clock. */
import type { Cost, History } from "../api/types";
import type { Question } from "./answers";
import { live, useAnswer, usePicture, type Answer } from "./hooks";
import { serverNow } from "./live";
import { client } from "./session";

interface Span {
  seconds: number;
  /** Beginnings are rounded to this: pages that ask at about the same time ask the same. */
  grain: number;
  everyMs: number;
}

/** The longer ago it began, the less does a minute change. */
export const RANGES = {
  hour: { seconds: 3600, grain: 10, everyMs: 15_000 },
  day: { seconds: 86_400, grain: 60, everyMs: 15_000 },
  week: { seconds: 604_800, grain: 600, everyMs: 60_000 },
  month: { seconds: 2_592_000, grain: 3600, everyMs: 300_000 },
} as const satisfies Record<string, Span>;
export type Range = keyof typeof RANGES;

export function rounded(moment: number, grain: number): number {
  return Math.max(0, Math.floor(moment / grain) * grain);
}

/** Of the calendar month (UTC) that a moment lies in. */
export function monthOf(now: number): { begin: number; end: number } {
  const date = new Date(now * 1000);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return { begin: Date.UTC(year, month, 1) / 1000, end: Date.UTC(year, month + 1, 1) / 1000 };
}

/** What is told before the server's time is known would be of another time. */
function useStarted<T>(question: Question<T>, version: unknown, everyMs: number): Answer<T> {
  const started = usePicture().heardAt > 0;
  return useAnswer(started ? question : null, version, everyMs);
}

/** What was spent in the last day, week, …, or since this calendar month began. */
export function useCost(range: Range | "calendar month", version: unknown): Answer<Cost> {
  const span = RANGES[range === "calendar month" ? "month" : range];
  const ask = (signal: AbortSignal) => {
    const now = serverNow(live.picture);
    const since =
      range === "calendar month" ? monthOf(now).begin : rounded(now - span.seconds, span.grain);
    return client.get<Cost>(`/cost?since=${since}`, signal);
  };
  return useStarted({ key: `cost of a ${range}`, ask }, version, span.everyMs);
}

export function useHistory(range: Range, version: unknown = 0): Answer<History> {
  const { seconds, grain, everyMs } = RANGES[range];
  const ask = (signal: AbortSignal) =>
    cropped(
      (path) => client.get<History>(path, signal),
      rounded(serverNow(live.picture) - seconds, grain),
      grain,
    );
  return useStarted({ key: `history of a ${range}`, ask }, version, everyMs);
}

const POINTS = 160;
const MUCH = 0.25;
/** Of a history: an empty beginning that is worth a second question. */

/** From `since`, or from when the service began if that is later. */
export async function cropped(
  get: (path: string) => Promise<History>,
  since: number,
  grain: number,
): Promise<History> {
  const ask = (from: number) => get(`/history?since=${from}&points=${POINTS}`);
  const found = await ask(since);
  const empty = emptyStretches(found);
  if (empty < MUCH * POINTS || empty === found.spend_per_hour.length) return found;
  return ask(rounded(found.since + empty * found.step_s, grain));
}

/** Stretches at the beginning of which nothing is known. */
function emptyStretches(history: History): number {
  const first = history.spend_per_hour.findIndex(
    (spend, n) => spend > 0 || typeof history.budget_per_hour[n] === "number",
  );
  return first < 0 ? history.spend_per_hour.length : first;
}
