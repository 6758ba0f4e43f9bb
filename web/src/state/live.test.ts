// @vitest-environment node
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { Client } from "../api/client";
import type { JobRow, Live, Node } from "../api/types";
import { after, LiveStore, NOTHING, serverNow } from "./live";

function job(id: string, state: JobRow["state"] = "running"): JobRow {
  return { id, state } as JobRow;
}

function node(id: number): Node {
  return { id } as Node;
}

const FIRST: Live = { now: 100, complete: true, speed: 60, version: "1.2", plan: 3 };

test("what a message leaves out stays as it was", () => {
  const before = after(NOTHING, { ...FIRST, counts: { running: 2 } }, 1, true);
  const next = after(before, { now: 101, complete: true, jobs: [job("1")] }, 2, false);
  expect(next).toMatchObject({ now: 101, heardAt: 2, speed: 60, version: "1.2", plan: 3 });
  expect(next.counts).toEqual({ running: 2 });
  expect([...next.jobs.keys()]).toEqual(["1"]);
});

test("a message does not change the picture before it, nor maps that it says nothing of", () => {
  const before = after(NOTHING, { ...FIRST, jobs: [job("1")], nodes: [node(1)] }, 1, true);
  const next = after(before, { now: 101, complete: true, nodes: [node(2)] }, 2, false);
  expect([...before.nodes.keys()]).toEqual([1]);
  expect(next.jobs).toBe(before.jobs);
});

test("a plan can be taken back by saying null", () => {
  const before = after(NOTHING, FIRST, 1, true);
  expect(after(before, { now: 101, complete: true, plan: null }, 2, false).plan).toBeNull();
});

test("a new stream replaces what the old one said, once it has said all of it", () => {
  const old: Live = { ...FIRST, complete: true, jobs: [job("1"), job("2")], nodes: [node(1)] };
  const before = after(NOTHING, old, 1, true);
  const half = after(before, { ...FIRST, complete: false, jobs: [job("2")] }, 2, true);
  expect([...half.jobs.keys()]).toEqual(["1", "2"]);
  expect(half.complete).toBe(true);
  const next = after(half, { now: 3, complete: true, jobs: [job("3")] }, 3, false);
  expect([...next.jobs.keys()]).toEqual(["2", "3"]);
  expect(next.nodes.size).toBe(0);
});

test("streams are counted, not their messages", () => {
  const first = after(NOTHING, FIRST, 1, true);
  expect(after(first, FIRST, 2, false).streams).toBe(1);
  expect(after(first, FIRST, 2, true).streams).toBe(2);
});

test("the first stream is shown as it comes", () => {
  const half = after(NOTHING, { ...FIRST, complete: false, jobs: [job("1")] }, 1, true);
  expect([...half.jobs.keys()]).toEqual(["1"]);
  const more = after(half, { now: 2, complete: false, jobs: [job("2")] }, 2, false);
  expect([...more.jobs.keys()]).toEqual(["1", "2"]);
  expect(more.complete).toBe(false);
});

test("jobs that end move over to the ended ones", () => {
  const before = after(NOTHING, { ...FIRST, jobs: [job("1"), job("2")] }, 1, true);
  const ended = job("1", "succeeded");
  const next = after(before, { now: 101, complete: true, jobs: [ended] }, 2, false);
  expect([...next.jobs.keys()]).toEqual(["2"]);
  expect(next.ended.get("1")?.state).toBe("succeeded");
});

test("of ended jobs only the newest 500 are kept", () => {
  const rows = Array.from({ length: 510 }, (_, i) => job(String(i), "stopped"));
  const next = after(NOTHING, { ...FIRST, jobs: rows }, 1, true);
  expect(next.ended.size).toBe(500);
  expect(next.ended.has("9")).toBe(false);
  expect(next.ended.has("509")).toBe(true);
});

test("nodes that are gone leave", () => {
  const before = after(NOTHING, { ...FIRST, nodes: [node(1), node(2)] }, 1, true);
  const next = after(before, { now: 101, complete: true, gone: [1] }, 2, false);
  expect([...next.nodes.keys()]).toEqual([2]);
});

test("the server's clock goes on at its own speed, and stands still once it is gone", () => {
  const picture = after(NOTHING, FIRST, 1000, true);
  expect(serverNow(picture, 3000)).toBe(100 + 2 * 60);
  expect(serverNow({ ...picture, connection: "gone" }, 3000)).toBe(100);
  expect(serverNow(NOTHING, 3000)).toBe(0);
});

/** A service that answers with one stream after another, as the test says. */
class Streams {
  opened = 0;
  private push: ((chunk: string | null) => void) | null = null;
  fails = false;

  async *text(_path: string, _accept: string, signal: AbortSignal): AsyncGenerator<string> {
    this.opened += 1;
    if (this.fails) throw new Error("nobody there");
    for (;;) {
      const chunk = await new Promise<string | null>((resolve) => {
        this.push = resolve;
        signal.addEventListener("abort", () => resolve(null));
      });
      if (chunk === null) return;
      yield chunk;
    }
  }

  async say(message: Live): Promise<void> {
    this.push?.(`data: ${JSON.stringify(message)}\n\n`);
    await vi.advanceTimersByTimeAsync(0);
  }

  async end(): Promise<void> {
    this.push?.(null);
    await vi.advanceTimersByTimeAsync(0);
  }
}

function started(): { streams: Streams; store: LiveStore; stop: () => void } {
  const streams = new Streams();
  const store = new LiveStore(streams as unknown as Client);
  return { streams, store, stop: store.start() };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("a stream that ends is said to be gone, and opened again after half a second", async () => {
  const { streams, store, stop } = started();
  await streams.say(FIRST);
  expect(store.picture.connection).toBe("live");
  await streams.end();
  expect(store.picture.connection).toBe("gone");
  expect(store.picture.now).toBe(100);
  await vi.advanceTimersByTimeAsync(499);
  expect(streams.opened).toBe(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(streams.opened).toBe(2);
  await streams.say({ ...FIRST, now: 200 });
  expect(store.picture).toMatchObject({ connection: "live", now: 200 });
  stop();
});

test("waits grow while nobody answers, and begin anew once somebody has", async () => {
  const { streams, stop } = started();
  streams.fails = true;
  await streams.end();
  for (const [wait, opened] of [
    [500, 2],
    [1000, 3],
    [2000, 4],
    [4000, 5],
    [8000, 6],
    [8000, 7],
  ] as const) {
    await vi.advanceTimersByTimeAsync(wait - 1);
    expect(streams.opened).toBe(opened - 1);
    await vi.advanceTimersByTimeAsync(1);
    expect(streams.opened).toBe(opened);
  }
  streams.fails = false;
  await vi.advanceTimersByTimeAsync(8000);
  await streams.say(FIRST);
  await streams.end();
  await vi.advanceTimersByTimeAsync(500);
  expect(streams.opened).toBe(9);
  stop();
});

test("a stream that says nothing for 20 seconds counts as gone", async () => {
  const { streams, store, stop } = started();
  await streams.say(FIRST);
  await vi.advanceTimersByTimeAsync(19_000);
  await streams.say({ now: 119, complete: true });
  await vi.advanceTimersByTimeAsync(19_000);
  expect(store.picture.connection).toBe("live");
  await vi.advanceTimersByTimeAsync(1000);
  expect(store.picture.connection).toBe("gone");
  stop();
});

test("once stopped it asks no more, and clearing forgets everything", async () => {
  const { streams, store, stop } = started();
  const told = vi.fn();
  store.subscribe(told);
  await streams.say(FIRST);
  stop();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(streams.opened).toBe(1);
  expect(store.picture.connection).toBe("live");
  store.clear();
  expect(store.picture).toBe(NOTHING);
  expect(told).toHaveBeenCalledTimes(2);
});

test("a late job stays due since when it was, though each report says that nothing is left", () => {
  const told = (now: number, left_s: number | null): Live => ({
    now,
    complete: true,
    jobs: [{ ...job("1"), left_s }],
  });
  let picture = after(NOTHING, { ...FIRST, ...told(100, 50) }, 1, true);
  expect(picture.jobs.get("1")?.due_at).toBeUndefined();
  picture = after(picture, told(200, 0), 2, false);
  expect(picture.jobs.get("1")?.due_at).toBe(150);
  picture = after(picture, told(300, 0), 3, false);
  expect(picture.jobs.get("1")?.due_at).toBe(150);
  picture = after(picture, told(400, 70), 4, false);
  expect(picture.jobs.get("1")?.due_at).toBeUndefined();
});
