/** Questions of the budget view that move: with time, or with a slider. */
import { useEffect, useRef, useState } from "react";

import { isAbort } from "../../api/client";
import type { Preview } from "../../api/types";
import { serverNow } from "../../state/live";
import { live, usePicture, type Answer } from "../../state/hooks";
import { client } from "../../state/session";
import { Latest } from "./latest";

/**
 * What `ask` finds at the server's present time: again every so often, and when `key` or `version`
 * change. The last answer stays while the next is on its way, unless `key` has changed.
 */
export function useMoving<T>(
  key: string,
  ask: (now: number, signal: AbortSignal) => Promise<T>,
  everyMs: number,
  version: unknown = 0,
): Answer<T> {
  const started = usePicture().heardAt > 0;
  const [state, setState] = useState<{ key: string; data: T | null; error: Error | null }>({
    key,
    data: null,
    error: null,
  });
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (!started) return;
    const asked = new AbortController();
    ask(serverNow(live.picture), asked.signal).then(
      (data) => {
        if (!asked.signal.aborted) setState({ key, data, error: null });
      },
      (problem: unknown) => {
        if (asked.signal.aborted || isAbort(problem)) return;
        const error = problem instanceof Error ? problem : new Error(String(problem));
        setState((was) => ({ key, data: was.key === key ? was.data : null, error }));
      },
    );
    return () => asked.abort();
    // `ask` is another function at every drawing; `key` says which question it asks.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [key, started, round, version]);
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") setRound((n) => n + 1);
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  const current = state.key === key;
  const data = current ? state.data : null;
  const error = current ? state.error : null;
  return {
    data,
    error,
    loading: data === null && error === null,
    again: () => setRound((n) => n + 1),
  };
}

export interface Previewing {
  /** The newest answer there is; it may still be that of the question before. */
  data: Preview | null;
  /** What the service said no with, to the present question. */
  error: Error | null;
  /** Whether `data` answers the present question. */
  settled: boolean;
}

interface Asked {
  budget: number;
  plan: number;
}

/** What the plan would be for a budget, while that is being dragged about. A service that is back
 * is asked again. */
export function usePreview(budget: number, plan: number, connected: boolean): Previewing {
  const [state, setState] = useState<{ asked: Asked; data: Preview | null; error: Error | null }>();
  const latest = useRef<Latest<Asked, Preview>>(null);
  useEffect(() => {
    const made = new Latest<Asked, Preview>(
      (asked, signal) => client.get(`/preview?budget_per_hour=${asked.budget}`, signal),
      (asked, data) => setState({ asked, data, error: null }),
      (asked, error) => setState((was) => ({ asked, data: was?.data ?? null, error })),
    );
    latest.current = made;
    return () => made.stop();
  }, []);
  useEffect(() => {
    latest.current?.put({ budget, plan });
  }, [budget, plan, connected]);
  if (!state) return { data: null, error: null, settled: false };
  const mine = state.asked.budget === budget && state.asked.plan === plan;
  const error = mine ? state.error : null;
  return { data: state.data, error, settled: mine && error === null };
}
