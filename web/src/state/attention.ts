/**
 * Whether anybody can be looking. A browser has six connections to a service, for all of its tabs
 * together, and a stream takes one for good: a seventh tab would wait for ever. So tabs that have
 * been in the background for a while give theirs back.
 */
import { useSyncExternalStore } from "react";

export const GIVE_BACK_MS = 10_000;

export class Attention {
  seen = true;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly listeners = new Set<() => void>();

  constructor(private readonly page: Document = document) {
    page.addEventListener("visibilitychange", () => this.look());
    this.look();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  private look(): void {
    clearTimeout(this.timer);
    if (this.page.visibilityState === "visible") this.set(true);
    else this.timer = setTimeout(() => this.set(false), GIVE_BACK_MS);
  }

  private set(seen: boolean): void {
    if (seen === this.seen) return;
    this.seen = seen;
    for (const listener of this.listeners) listener();
  }
}

const attention = new Attention();

export function useLookedAt(): boolean {
  return useSyncExternalStore(attention.subscribe, () => attention.seen);
}
