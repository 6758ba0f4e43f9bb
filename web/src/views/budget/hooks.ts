/** Questions of the budget view that move with a slider. */
import { useEffect, useRef, useState } from "react";

import type { Preview } from "../../api/types";
import { client } from "../../state/session";
import { Latest } from "./latest";

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
      (asked, signal) =>
        client.get(`/preview?budget_per_hour=${encodeURIComponent(asked.budget)}`, signal),
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
