/** Events as they happen, and older ones on demand. */
import { useCallback, useEffect, useRef, useState } from "react";

import { asError, isAbort, type Client } from "../../api/client";
import type { Event, EventList } from "../../api/types";
import { usePicture } from "../../state/hooks";
import { pause } from "../../state/pause";
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

/** Asks for newer events, one request at a time: what happens meanwhile is asked for afterwards. */
export class Follower {
  /** All events up to this one are there, or were; null: none was asked for yet. */
  private upTo: number | null = null;
  private wanted = 0;
  private busy = false;
  private readonly over = new AbortController();

  constructor(
    private readonly asked: Pick<Client, "get">,
    private readonly told: (change: (was: Kept | null) => Kept) => void,
    private readonly failed: (error: Error) => void,
  ) {}

  /** There are events up to `last`. */
  look(last: number): void {
    this.wanted = Math.max(this.wanted, last);
    if (!this.busy) void this.run();
  }

  stop(): void {
    this.over.abort();
  }

  private async run(): Promise<void> {
    const { signal } = this.over;
    this.busy = true;
    try {
      while (!signal.aborted && (this.upTo === null || this.upTo < this.wanted)) {
        const began = performance.now();
        await this.ask(this.upTo, this.wanted);
        await pause(performance.now() - began, signal); // half of the time is enough
      }
    } catch (problem) {
      if (!signal.aborted && !isAbort(problem)) this.failed(asError(problem));
    } finally {
      this.busy = false;
    }
  }

  private async ask(from: number | null, wanted: number): Promise<void> {
    const { signal } = this.over;
    // Who was away for long begins anew, with the newest.
    const anew = from === null || wanted - from > AT_ONCE;
    const path = anew ? `/events?limit=${FIRST}` : `/events?after=${from}&limit=${AT_ONCE}`;
    const said = await this.asked.get<EventList>(path, signal);
    if (signal.aborted) return;
    const last = said.events.at(-1)?.number ?? 0;
    const all = anew || said.events.length < AT_ONCE;
    this.upTo = all ? Math.max(last, wanted) : last;
    this.told((was) => (anew || !was ? begun(said) : later(was, said.events)));
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
  const { lastEvent, streams } = usePicture();
  const [kept, setKept] = useState<Kept | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [loadingOlder, setLoadingOlder] = useState(false);
  const [round, setRound] = useState(0);
  const follower = useRef<Follower>(null);
  useEffect(() => {
    const take = (change: (was: Kept | null) => Kept) => {
      setKept(change);
      setError(null);
    };
    const made = new Follower(client, take, setError);
    follower.current = made;
    return () => made.stop();
  }, []);
  useEffect(() => follower.current?.look(lastEvent), [lastEvent, streams, round]);
  const floor = kept?.floor ?? 0;
  const older = useCallback(() => {
    const [path, from] = olderPath(floor);
    setLoadingOlder(true);
    client
      .get<EventList>(path)
      .then(
        (said) => setKept((was) => (was?.floor === floor ? earlier(was, said.events, from) : was)),
        (problem: unknown) => setError(asError(problem)),
      )
      .finally(() => setLoadingOlder(false));
  }, [floor]);
  const again = useCallback(() => setRound((n) => n + 1), []);
  return { kept, error, again, older, loadingOlder };
}
