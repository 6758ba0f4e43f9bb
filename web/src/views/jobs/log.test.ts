import { afterEach, describe, expect, test, vi } from "vitest";

import { ApiError, Unreachable, type Client } from "../../api/client";
import { LogBuffer } from "./logBuffer";
import { followLog, logPath, workersOf, type LogPlace } from "./logStream";

describe("the buffer", () => {
  test("puts lines together that came in pieces", () => {
    const log = new LogBuffer();
    log.add("one\ntw");
    expect(log.text()).toBe("one\ntw");
    log.add("o\nthree\n");
    expect(log.text()).toBe("one\ntwo\nthree");
    expect(log.count).toBe(3);
  });

  test("keeps the last lines only, and counts the others", () => {
    const log = new LogBuffer(3);
    log.add("1\n2\n3\n4\n5\n");
    expect(log.text()).toBe("3\n4\n5");
    expect(log.dropped).toBe(2);
  });

  test("shows a progress bar as a terminal leaves it, and no colours", () => {
    const log = new LogBuffer();
    log.add("10 %\r20 %\r30 %\n\u001b[31mred\u001b[0m\r\n");
    expect(log.text()).toBe("30 %\nred");
  });

  test("does not grow without end by one line that never ends", () => {
    const log = new LogBuffer();
    for (let n = 0; n < 100; n++) log.add("x".repeat(1000));
    expect(log.text().length).toBeLessThan(5000);
  });
});

async function* bytes(...pieces: Uint8Array[]) {
  for (const piece of pieces) yield await Promise.resolve(piece);
}

type Answer = () => Promise<unknown>;

/** A service that gives these answers; the job has ended when there is one left. */
function fake(...answers: Answer[]) {
  const asked: URLSearchParams[] = [];
  const client = {
    bytes: (path: string) => {
      asked.push(new URLSearchParams(path.split("?")[1]));
      return (answers.shift() ?? (() => Promise.reject(new Unreachable())))();
    },
  } as unknown as Client;
  return { client, asked, ended: () => answers.length <= 1 };
}

const from = (offset: number, ...pieces: Uint8Array[]): Answer => {
  const headers = new Headers({ "boa-log-offset": String(offset) });
  return () => Promise.resolve([headers, bytes(...pieces)]);
};

/** All that is told until the job has ended. */
async function followed(given: ReturnType<typeof fake>, place: LogPlace) {
  vi.useFakeTimers();
  const waits: boolean[] = [];
  let text = "";
  const done = followLog(given.client, place, new AbortController().signal, {
    text: (piece) => (text += piece),
    anew: () => (text = ""),
    waiting: (away) => waits.push(away),
    ended: given.ended,
  });
  await vi.runAllTimersAsync();
  await done;
  return { text, waits };
}

afterEach(() => void vi.useRealTimers());

const utf8 = (text: string) => new TextEncoder().encode(text);

describe("following a log", () => {
  test("goes on with the byte after the last one, also when the service comes back", async () => {
    const given = fake(
      from(100, utf8("ab")),
      () => Promise.reject(new Unreachable()),
      from(102, utf8("cd")),
      from(104),
      from(104, utf8("e")),
    );
    const place: LogPlace = { job: "7", rank: 0, skip: null };
    const { text, waits } = await followed(given, place);
    expect(text).toBe("abcde");
    expect(place.skip).toBe(105);
    expect(waits).toEqual([false, true, false, false, false]);
    expect(given.asked.map((each) => each.get("skip"))).toEqual([null, "102", "102", "104", "104"]);
  });

  test("keeps no connection: no answer is one that goes on", async () => {
    const given = fake(from(0, utf8("a")), from(1));
    await followed(given, { job: "7", rank: 0, skip: null });
    expect(given.asked.map((each) => each.get("follow"))).toEqual([null, null]);
  });

  test("puts a letter together whose bytes came apart, also in two answers", async () => {
    const letter = utf8("é");
    const given = fake(from(0, letter.slice(0, 1)), from(1, letter.slice(1)));
    expect((await followed(given, { job: "7", rank: 0, skip: null })).text).toBe("é");
  });

  test("reads once more after the end: what was printed last is in it", async () => {
    const given = fake(from(0, utf8("the end")));
    const { text } = await followed(given, { job: "7", rank: 0, skip: null });
    expect(text).toBe("the end");
    expect(given.asked).toHaveLength(1);
  });

  test("begins anew where the service has cut off what came before", async () => {
    const given = fake(from(900, utf8("old")), from(40, utf8("new")));
    const place: LogPlace = { job: "7", rank: 0, skip: null };
    expect((await followed(given, place)).text).toBe("new");
    expect(place.skip).toBe(43);
  });

  test("ends with the service's words where it says no", async () => {
    const given = fake(() => Promise.reject(new ApiError(422, "rank: got 9")));
    const to = { text: () => undefined, anew: () => undefined, waiting: () => undefined };
    const place = { job: "7", rank: 9, skip: null };
    const signal = new AbortController().signal;
    await expect(
      followLog(given.client, place, signal, { ...to, ended: given.ended }),
    ).rejects.toThrow("rank: got 9");
  });

  test("begins with the last lines, then goes on by bytes", () => {
    expect(logPath({ job: "7", rank: 2, skip: null })).toBe("/jobs/7/logs?rank=2&tail=2000");
    expect(logPath({ job: "7", rank: 0, skip: 9 })).toBe("/jobs/7/logs?rank=0&tail=2000&skip=9");
  });

  test("offers as many workers as there are processes with a log", () => {
    expect(workersOf("single", [8])).toBe(1);
    expect(workersOf("workers", [2, 8, 4])).toBe(8);
    expect(workersOf(undefined, [])).toBe(1);
  });
});
