/** How views look at things: the live picture, answers to single questions, the address, time. */
import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";

import { Answers, type Question } from "./answers";
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
  /** When `data` came, by the server's clock; 0: nobody knows. */
  at: number;
  again: () => void;
}

const answers = new Answers(() => serverNow(live.picture));

let streams = 0;
live.subscribe(() => {
  // After all parts of the page have heard it: what they no longer ask for is not asked again.
  if (streams !== live.picture.streams) setTimeout(() => answers.retry());
  ({ streams } = live.picture);
});

/**
 * What the service answers to a question or at a path (null: nothing is asked), asked again when
 * `version` changes and every `everyMs`, but never before the last answer is there. That one stays
 * while the next is on its way.
 */
export function useAnswer<T>(
  asked: string | Question<T> | null,
  version: unknown = 0,
  everyMs = 0,
): Answer<T> {
  const key = typeof asked === "string" ? asked : asked?.key;
  const subscribe = useCallback(
    (tell: () => void) =>
      asked === null
        ? () => undefined
        : answers.subscribe(typeof asked === "string" ? at<T>(asked) : asked, everyMs, tell),
    // A question is another object at every drawing; its key says which one it is.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [key, everyMs],
  );
  const heard = useSyncExternalStore(subscribe, () => answers.heard<T>(key));
  const was = useRef({ key, version });
  useEffect(() => {
    const moved = was.current.key === key && was.current.version !== version;
    if (moved && key !== undefined) answers.again(key, version);
    was.current = { key, version };
  }, [key, version]);
  const again = useCallback(() => {
    if (key !== undefined) answers.again(key);
  }, [key]);
  return { ...heard, loading: asked !== null && heard.data === null && !heard.error, again };
}

function at<T>(path: string): Question<T> {
  return { key: path, ask: (signal) => client.get<T>(path, signal) };
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
