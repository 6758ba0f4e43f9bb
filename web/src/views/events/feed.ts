/** Events as they happen, and older ones on demand. */
import { useCallback, useEffect, useRef, useState } from "react";

import { isAbort, type Client } from "../../api/client";
import type { Event, EventList } from "../../api/types";
import { usePicture } from "../../state/hooks";
import { client } from "../../state/session";

export const FIRST = 200;
const AT_ONCE = 1000;
export const MOST = 5000;

export interface Kept {
  /** By rising number. */
  events: readonly Event[];
  /** All events after this one are there, or were. */
  floor: number;
}

/** The newest, as a list that is asked for without a place gives them. */
export function begun(said: EventList): Kept {
  const first = said.events[0];
  return { events: said.events, floor: first ? first.number - 1 : 0 };
}

/** With newer ones; the oldest go when they are too many. */
export function later(kept: Kept, events: readonly Event[]): Kept {
  const last = kept.events.at(-1)?.number ?? 0;
  const all = [...kept.events, ...events.filter((event) => event.number > last)];
  const over = all.length - MOST;
  if (over <= 0) return { ...kept, events: all };
  return { events: all.slice(over), floor: all[over - 1]?.number ?? kept.floor };
}

/** With those between a new floor and the one before. */
export function earlier(kept: Kept, events: readonly Event[], floor: number): Kept {
  const before = events.filter((event) => event.number <= kept.floor);
  return { events: [...before, ...kept.events], floor };
}

/** Where to ask for older ones: they are listed upwards from a number. */
export function olderPath(floor: number): [path: string, floor: number] {
  const from = Math.max(0, floor - FIRST);
  return [`/events?after=${from}&limit=${FIRST}`, from];
}

async function newer(asked: Client, after: number, signal: AbortSignal): Promise<Event[]> {
  const events: Event[] = [];
  for (let from = after; ;) {
    const said = await asked.get<EventList>(`/events?after=${from}&limit=${AT_ONCE}`, signal);
    events.push(...said.events);
    const last = said.events.at(-1);
    if (!last || said.events.length < AT_ONCE) return events;
    from = last.number;
  }
}

export interface Feed {
  kept: Kept | null;
  error: Error | null;
  again: () => void;
  /** Load older ones. */
  older: () => void;
  loadingOlder: boolean;
}

export function useFeed(): Feed {
  const { lastEvent } = usePicture();
  const [kept, setKept] = useState<Kept | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [loadingOlder, setLoadingOlder] = useState(false);
  const [round, setRound] = useState(0);
  const last = useRef<number | null>(null);
  useEffect(() => {
    last.current = kept === null ? null : (kept.events.at(-1)?.number ?? 0);
  }, [kept]);
  useEffect(() => {
    const asked = new AbortController();
    const take = (next: (was: Kept | null) => Kept | null) => {
      if (asked.signal.aborted) return;
      setKept(next);
      setError(null);
    };
    const fail = (problem: unknown) => {
      if (asked.signal.aborted || isAbort(problem)) return;
      setError(problem instanceof Error ? problem : new Error(String(problem)));
    };
    const from = last.current;
    if (from === null) {
      const path = `/events?limit=${FIRST}`;
      client.get<EventList>(path, asked.signal).then((said) => take(() => begun(said)), fail);
    } else if (lastEvent > from) {
      newer(client, from, asked.signal).then((events) => {
        take((was) => was && later(was, events));
      }, fail);
    }
    return () => asked.abort();
  }, [lastEvent, round]);
  const floor = kept?.floor ?? 0;
  const older = useCallback(() => {
    const [path, from] = olderPath(floor);
    setLoadingOlder(true);
    client
      .get<EventList>(path)
      .then(
        (said) => setKept((was) => (was?.floor === floor ? earlier(was, said.events, from) : was)),
        (problem: unknown) =>
          setError(problem instanceof Error ? problem : new Error(String(problem))),
      )
      .finally(() => setLoadingOlder(false));
  }, [floor]);
  const again = useCallback(() => setRound((n) => n + 1), []);
  return { kept, error, again, older, loadingOlder };
}
