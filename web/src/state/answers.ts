/** Questions that are asked again and again: each once, however many parts of a page want to know. */
import { asError } from "../api/client";

const REST = 20;
/** A service that takes long is asked less often: of this many parts of the time, for one. */

/** Two with the same key are the same question. */
export interface Question<T> {
  key: string;
  ask: (signal: AbortSignal) => Promise<T>;
}

export interface Heard<T> {
  data: T | null;
  /** Of the last answer; `data` is older, then. */
  error: Error | null;
  /** When `data` came, by the server's clock; 0: nobody knows. */
  at: number;
}

const NOTHING: Heard<never> = { data: null, error: null, at: 0 };

interface Listener {
  tell: () => void;
  /** 0: once is enough. */
  everyMs: number;
}

/** One question. The next round begins after the answer to the last: none is given up for a newer. */
class Asking<T> {
  heard: Heard<T> = NOTHING;
  readonly listeners = new Set<Listener>();
  private asked: AbortController | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private once = false;
  private version: unknown;
  private endedAt = 0;
  private tookMs = 0;

  constructor(
    private readonly question: Question<T>,
    private readonly now: () => number,
  ) {}

  /** As soon as may be. Who asks for the same `version` twice is answered once. */
  again(version?: unknown): void {
    if (version !== undefined) {
      if (version === this.version) return;
      this.version = version;
    }
    if (this.asked) this.once = true;
    else this.ask();
  }

  /** Wait for the next round, by who wants it soonest. */
  schedule(): void {
    clearTimeout(this.timer);
    if (this.asked) return;
    const paces = [...this.listeners].map(({ everyMs }) => everyMs).filter((each) => each > 0);
    if (!this.once && paces.length === 0) return;
    const wait = this.once ? this.tookMs : Math.max(Math.min(...paces), REST * this.tookMs);
    this.timer = setTimeout(() => this.ask(), this.endedAt + wait - performance.now());
  }

  stop(): void {
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.seen);
    this.asked?.abort();
  }

  private readonly seen = () => this.ask();

  /** Where nobody looks, not before somebody does. */
  private ask(): void {
    clearTimeout(this.timer);
    if (document.visibilityState !== "visible") {
      document.addEventListener("visibilitychange", this.seen, { once: true });
      return;
    }
    if (!this.asked) void this.send();
  }

  private async send(): Promise<void> {
    const asked = new AbortController();
    this.asked = asked;
    this.once = false;
    const began = performance.now();
    let next: Heard<T>;
    try {
      next = { data: await this.question.ask(asked.signal), error: null, at: this.now() };
    } catch (problem) {
      next = { ...this.heard, error: asError(problem) };
    }
    if (asked.signal.aborted) return;
    this.heard = next;
    this.asked = null;
    this.endedAt = performance.now();
    this.tookMs = this.endedAt - began;
    this.schedule();
    for (const { tell } of this.listeners) tell();
  }
}

/** All questions that somebody wants to know the answer to, by their keys. */
export class Answers {
  private readonly known = new Map<string, Asking<unknown>>();

  constructor(private readonly now: () => number) {}

  /** What is known; the same object until there is news. */
  heard<T>(key: string | undefined): Heard<T> {
    return ((key === undefined ? null : this.known.get(key)?.heard) ?? NOTHING) as Heard<T>;
  }

  subscribe<T>(question: Question<T>, everyMs: number, tell: () => void): () => void {
    const { key } = question;
    let asking = this.known.get(key);
    if (!asking) {
      asking = new Asking(question, this.now);
      this.known.set(key, asking);
      asking.again();
    }
    const [found, listener] = [asking, { tell, everyMs }];
    found.listeners.add(listener);
    found.schedule();
    return () => {
      found.listeners.delete(listener);
      queueMicrotask(() => this.drop(key)); // who only changes the pace is back by then
    };
  }

  again(key: string, version?: unknown): void {
    this.known.get(key)?.again(version);
  }

  /** What failed, once more: the service is back. */
  retry(): void {
    for (const asking of this.known.values()) if (asking.heard.error) asking.again();
  }

  private drop(key: string): void {
    const asking = this.known.get(key);
    if (!asking || asking.listeners.size > 0) return;
    asking.stop();
    this.known.delete(key);
  }
}
