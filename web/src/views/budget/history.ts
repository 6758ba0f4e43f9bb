/** Histories without the time before there was anything. */
import type { History } from "../../api/types";

const POINTS = 160;
const MUCH = 0.25;
/** Of a history: an empty beginning that is worth a second question. */

/** From `since`, or from when the service began if that is later. */
export async function cropped(
  get: (path: string) => Promise<History>,
  since: number,
): Promise<History> {
  const ask = (from: number) => get(`/history?since=${from}&points=${POINTS}`);
  const found = await ask(since);
  const empty = emptyStretches(found);
  if (empty < MUCH * POINTS || empty === found.spend_per_hour.length) return found;
  return ask(found.since + empty * found.step_s);
}

/** Stretches at the beginning of which nothing is known. */
export function emptyStretches(history: History): number {
  const first = history.spend_per_hour.findIndex(
    (spend, n) => spend > 0 || typeof history.budget_per_hour[n] === "number",
  );
  return first < 0 ? history.spend_per_hour.length : first;
}
