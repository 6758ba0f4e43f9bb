import { expect, test } from "vitest";

import type { Event } from "../../api/types";
import { begun, earlier, later, MOST, olderPath, type Kept } from "./feed";

const events = (from: number, to: number): Event[] =>
  Array.from({ length: to - from + 1 }, (_, index) => ({
    number: from + index,
    at: from + index,
    kind: "started",
    text: "",
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
