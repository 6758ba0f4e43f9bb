import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import type { Client } from "../../api/client";
import type { Event, EventList } from "../../api/types";
import { begun, earlier, Follower, later, MOST, olderPath, type Kept } from "./feed";

const events = (from: number, to: number): Event[] =>
  Array.from({ length: to - from + 1 }, (_, index) => ({
    number: from + index,
    at: from + index,
    kind: "started",
    text: "",
    parts: [],
    job: null,
    node: null,
    data: {},
  }));
const numbers = (kept: Kept) => kept.events.map(({ number }) => number);

test("newer events follow, and none is there twice", () => {
  const kept = later(begun({ events: events(5, 7), last: 7 }), events(6, 9));
  expect(numbers(kept)).toEqual([5, 6, 7, 8, 9]);
  expect(kept.floor).toBe(4);
});

test("older ones are asked for from below what is there, and put before it", () => {
  const kept = begun({ events: events(301, 303), last: 303 });
  const [path, floor] = olderPath(kept.floor);
  expect(path).toBe("/events?after=100&limit=200");
  const more = earlier(kept, events(101, 301), floor);
  expect(numbers(more).slice(0, 2)).toEqual([101, 102]);
  expect(numbers(more).slice(-4)).toEqual([300, 301, 302, 303]);
  expect(more.floor).toBe(100);
});

test("the beginning is reached at zero", () => {
  expect(olderPath(30)).toEqual(["/events?after=0&limit=200", 0]);
  expect(begun({ events: [], last: 0 }).floor).toBe(0);
});

test("a page that stays open for days keeps the newest only, and knows what it dropped", () => {
  const kept = later(begun({ events: events(1, 10), last: 10 }), events(11, MOST + 5));
  expect(kept.events).toHaveLength(MOST);
  expect(numbers(kept)[0]).toBe(6);
  expect(kept.floor).toBe(5);
});

describe("following", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** A service that has events up to `last`, and takes its time. */
  function service(took: number) {
    const asked: string[] = [];
    const it = { last: 0, fails: false, asked, kept: null as Kept | null, errors: [] as string[] };
    const get = async (path: string): Promise<EventList> => {
      asked.push(path);
      await new Promise((resolve) => setTimeout(resolve, took));
      if (it.fails) throw new Error("away");
      const query = new URLSearchParams(path.split("?")[1]);
      const [after, limit] = [query.get("after"), Number(query.get("limit"))];
      const from = after === null ? Math.max(0, it.last - limit) : Number(after);
      return { events: events(from + 1, Math.min(it.last, from + limit)), last: it.last };
    };
    const follower = new Follower(
      { get } as unknown as Client,
      (change) => (it.kept = change(it.kept)),
      (error) => it.errors.push(error.message),
    );
    const happens = (last: number) => {
      it.last = last;
      follower.look(last);
    };
    return { it, follower, happens };
  }

  test("slow answers are shown though something happens all the time, one asked at a time", async () => {
    const { it, happens } = service(1200);
    for (let n = 1; n <= 60; n++) {
      happens(n);
      await vi.advanceTimersByTimeAsync(1000);
    }
    expect(it.asked.length).toBeLessThan(30);
    expect(it.kept && numbers(it.kept).length).toBeGreaterThan(50);
    await vi.advanceTimersByTimeAsync(5000);
    expect(it.kept && numbers(it.kept)).toEqual(Array.from({ length: 60 }, (_, n) => n + 1));
  });

  test("who was away for long begins anew with the newest, in one request", async () => {
    const { it, happens } = service(10);
    happens(5);
    await vi.advanceTimersByTimeAsync(100);
    happens(90_000);
    await vi.advanceTimersByTimeAsync(100);
    expect(it.asked).toEqual(["/events?limit=200", "/events?limit=200"]);
    expect(it.kept?.floor).toBe(89_800);
    expect(it.kept?.events.at(-1)?.number).toBe(90_000);
  });

  test("what failed is asked for again with the next event", async () => {
    const { it, happens } = service(10);
    it.fails = true;
    happens(5);
    await vi.advanceTimersByTimeAsync(100);
    expect(it.errors).toEqual(["away"]);
    it.fails = false;
    happens(6);
    await vi.advanceTimersByTimeAsync(100);
    expect(it.kept && numbers(it.kept)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test("once stopped nothing is told any more", async () => {
    const { it, follower, happens } = service(10);
    happens(5);
    follower.stop();
    await vi.advanceTimersByTimeAsync(100);
    expect(it.kept).toBeNull();
  });
});
