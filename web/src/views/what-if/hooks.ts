import { useEffect, useMemo, useState } from "react";

import { asError } from "../../api/client";
import type { SimulationAnswer } from "../../api/types";
import { client } from "../../state/session";
import { isFinished, type Finished } from "./results";

/** Results of the simulations that are looked at, each fetched once: they do not change. A
 * service that is back is asked again. */
export function useResults(
  ids: readonly string[],
  connected: boolean,
): {
  finished: Finished[];
  error: Error | null;
} {
  const [known, setKnown] = useState<ReadonlyMap<string, Finished>>(new Map());
  const [error, setError] = useState<Error | null>(null);
  const missing = ids.filter((id) => !known.has(id)).join(",");
  useEffect(() => {
    if (missing === "") return;
    let over = false;
    const asked = missing.split(",").map(async (id) => {
      const { simulation } = await client.get<SimulationAnswer>(
        `/what-if/${encodeURIComponent(id)}`,
      );
      return simulation;
    });
    Promise.all(asked).then(
      (found) => {
        if (over) return;
        setError(null);
        setKnown((was) => new Map([...was, ...found.filter(isFinished).map(keyed)]));
      },
      (problem: unknown) => {
        if (!over) setError(asError(problem));
      },
    );
    return () => {
      over = true;
    };
  }, [missing, connected]);
  const wanted = ids.join(",");
  const finished = useMemo(
    () =>
      wanted
        .split(",")
        .map((id) => known.get(id))
        .filter((found) => found !== undefined),
    [wanted, known],
  );
  return { finished, error };
}

function keyed(found: Finished): [string, Finished] {
  return [found.id, found];
}
