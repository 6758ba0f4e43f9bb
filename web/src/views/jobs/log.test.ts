import { describe, expect, test, vi } from "vitest";

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

function fake(answers: (() => Promise<unknown>)[], state = "running") {
  const asked: string[] = [];
  const client = {
    bytes: (path: string) => {
      asked.push(path);
      return (answers.shift() ?? (() => Promise.reject(new Unreachable())))();
    },
    get: () => Promise.resolve({ job: { state: answers.length === 0 ? "succeeded" : state } }),
  } as unknown as Client;
  return { client, asked };
}

const utf8 = (text: string) => new TextEncoder().encode(text);

describe("following a log", () => {
  test("goes on with the byte after the last one when the service comes back", async () => {
    vi.useFakeTimers();
    const { client, asked } = fake([
      () => Promise.resolve([new Headers({ "boa-log-offset": "100" }), bytes(utf8("ab"))]),
      () => Promise.reject(new Unreachable()),
      () => Promise.resolve([new Headers({ "boa-log-offset": "102" }), bytes(utf8("cd"))]),
    ]);
    const place: LogPlace = { job: "7", rank: 0, skip: null };
    let text = "";
    const waits: boolean[] = [];
    const done = followLog(client, place, new AbortController().signal, {
      text: (piece) => (text += piece),
      waiting: (away) => waits.push(away),
    });
    await vi.runAllTimersAsync();
    await done;
    vi.useRealTimers();
    expect(text).toBe("abcd");
    expect(place.skip).toBe(104);
    expect(waits).toEqual([false, true, false]);
    expect(asked.map((path) => new URLSearchParams(path.split("?")[1]).get("skip"))).toEqual([
      null,
      "102",
      "102",
    ]);
  });

  test("puts a letter together whose bytes came apart", async () => {
    const letter = utf8("é");
    const { client } = fake([
      () => Promise.resolve([new Headers(), bytes(letter.slice(0, 1), letter.slice(1))]),
    ]);
    let text = "";
    await followLog(client, { job: "7", rank: 0, skip: null }, new AbortController().signal, {
      text: (piece) => (text += piece),
      waiting: () => undefined,
    });
    expect(text).toBe("é");
  });

  test("ends with the service's words where it says no", async () => {
    const { client } = fake([() => Promise.reject(new ApiError(422, "rank: got 9"))]);
    const place = { job: "7", rank: 9, skip: null };
    const to = { text: () => undefined, waiting: () => undefined };
    await expect(followLog(client, place, new AbortController().signal, to)).rejects.toThrow(
      "rank: got 9",
    );
  });

  test("begins with the last lines, then goes on by bytes", () => {
    expect(logPath({ job: "7", rank: 2, skip: null }, true)).toBe(
      "/jobs/7/logs?rank=2&follow=true&tail=2000",
    );
    expect(logPath({ job: "7", rank: 0, skip: 0 }, false)).toBe(
      "/jobs/7/logs?rank=0&follow=false&skip=0",
    );
  });

  test("offers as many workers as there are processes with a log", () => {
    expect(workersOf("single", [8])).toBe(1);
    expect(workersOf("workers", [2, 8, 4])).toBe(8);
    expect(workersOf(undefined, [])).toBe(1);
  });
});
