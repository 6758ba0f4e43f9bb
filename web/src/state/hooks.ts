/** How views look at things: the live picture, answers to single questions, the address, time. */
import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";

import { isAbort } from "../api/client";
import { LiveStore, serverNow, type Picture } from "./live";
import { client } from "./session";

export const live = new LiveStore(client);

export function usePicture(): Picture {
  return useSyncExternalStore(live.subscribe, () => live.picture);
}

/** The server's time, anew every second. */
export function useNow(everyMs = 1000): number {
  const picture = usePicture();
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return serverNow(picture);
}

export interface Answer<T> {
  data: T | null;
  error: Error | null;
  loading: boolean;
  again: () => void;
}

/**
 * What the service answers at `path` (null: nothing is asked), asked again when `version` changes
 * and every `everyMs`. The last answer stays while the next is on its way.
 */
export function useAnswer<T>(path: string | null, version: unknown = 0, everyMs = 0): Answer<T> {
  const [state, setState] = useState<{ path: string | null; data: T | null; error: Error | null }>({
    path: null,
    data: null,
    error: null,
  });
  const [round, setRound] = useState(0);
  const again = useCallback(() => setRound((n) => n + 1), []);
  useEffect(() => {
    if (path === null) return;
    const asked = new AbortController();
    client.get<T>(path, asked.signal).then(
      (data) => {
        if (!asked.signal.aborted) setState({ path, data, error: null });
      },
      (problem: unknown) => {
        if (asked.signal.aborted || isAbort(problem)) return;
        const error = problem instanceof Error ? problem : new Error(String(problem));
        setState((was) => ({ path, data: was.path === path ? was.data : null, error }));
      },
    );
    return () => asked.abort();
  }, [path, version, round]);
  useEffect(() => {
    if (path === null || everyMs <= 0) return;
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") setRound((n) => n + 1);
    }, everyMs);
    return () => clearInterval(timer);
  }, [path, everyMs]);
  const current = state.path === path;
  const data = current ? state.data : null;
  const error = current ? state.error : null;
  return { data, error, loading: path !== null && data === null && error === null, again };
}

/** A value that follows another one, but only after it has been still for a while. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

function subscribeToHash(listener: () => void): () => void {
  window.addEventListener("hashchange", listener);
  return () => window.removeEventListener("hashchange", listener);
}

/** The parts of the address: `#/jobs/41` is ["jobs", "41"]. What follows a "?" is no part of it. */
export function useRoute(): string[] {
  const hash = useSyncExternalStore(subscribeToHash, () => window.location.hash);
  const [path = ""] = hash.replace(/^#\/?/, "").split("?");
  return path.split("/").filter(Boolean).map(decoded);
}

/** What follows the "?" of the address, and how to put something else there. */
export function useQuery(): [string, (query: string) => void] {
  const hash = useSyncExternalStore(subscribeToHash, () => window.location.hash);
  return [hash.split("?").slice(1).join("?"), replaceQuery];
}

/** In place: going back is for going to another page, not for every letter of a search. */
function replaceQuery(query: string): void {
  const [path = ""] = window.location.hash.split("?");
  window.history.replaceState(null, "", query ? `${path}?${query}` : path || "#/");
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // somebody typed a lone %
  }
}

export function linkTo(...parts: string[]): string {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

/** The width of an element, followed as it changes. */
export function useWidth<E extends Element>(): [React.RefObject<E | null>, number] {
  const ref = useRef<E>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const observer = new ResizeObserver(([entry]) => {
      if (entry) setWidth(entry.contentRect.width);
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}
