/** Ended jobs, page by page as somebody scrolls. */
import { useCallback, useEffect, useState } from "react";

import { asError, isAbort } from "../../api/client";
import type { JobList } from "../../api/types";
import { usePicture } from "../../state/hooks";
import type { SeenJob } from "../../state/live";
import { client } from "../../state/session";
import { endedPath, type Filters } from "./filters";

interface Loaded {
  /** What was asked first: another question begins anew. */
  question: string | null;
  /** Path of the last page. */
  path: string | null;
  rows: readonly SeenJob[];
  /** Where it goes on; null: that was all. */
  before: number | null;
  error: Error | null;
}

const NOTHING: Loaded = { question: null, path: null, rows: [], before: null, error: null };

/** What is there after one more page. */
export function grown(was: Loaded, question: string, path: string, found: JobList): Loaded {
  const told = found.jobs.map((row) => ({ ...row, told_at: found.now }));
  const goesOn = was.question === question && was.before !== null;
  const rows = goesOn ? [...was.rows, ...told] : told;
  return { question, path, rows, before: found.before, error: null };
}

export interface Ended {
  rows: readonly SeenJob[];
  loading: boolean;
  /** Whether there are more than these. */
  more: boolean;
  error: Error | null;
  /** Load the next page, if there is one. */
  next: () => void;
  /** Ask once more for what did not come. */
  again: () => void;
}

/** How often there was a new stream after the first: who ended meanwhile was not seen to end. */
function useEra(): number {
  return Math.max(0, usePicture().streams - 1);
}

export function useEnded(filters: Filters): Ended {
  const first = endedPath(filters, null);
  const question = `${useEra()} ${first}`;
  const [loaded, setLoaded] = useState<Loaded>(NOTHING);
  const [wanted, setWanted] = useState({ question, path: first, round: 0 });
  const path = wanted.question === question ? wanted.path : first;
  useEffect(() => {
    if (path === null) return;
    const asked = new AbortController();
    client.get<JobList>(path, asked.signal).then(
      (found) => {
        if (!asked.signal.aborted) setLoaded((was) => grown(was, question, path, found));
      },
      (problem: unknown) => {
        if (asked.signal.aborted || isAbort(problem)) return;
        const error = asError(problem);
        setLoaded((was) => ({
          ...(was.question === question ? was : NOTHING),
          question,
          path,
          error,
        }));
      },
    );
    return () => asked.abort();
  }, [question, path, wanted.round]);
  const { rows, before, error } = loaded.question === question ? loaded : NOTHING;
  const loading = path !== null && (loaded.question !== question || loaded.path !== path);
  const next = useCallback(() => {
    if (loading || error || before === null) return;
    setWanted({ question, path: endedPath(filters, before), round: 0 });
  }, [loading, error, before, question, filters]);
  const again = useCallback(
    () => setWanted(({ round }) => ({ question, path, round: round + 1 })),
    [question, path],
  );
  return { rows, loading, more: before !== null, error, next, again };
}
