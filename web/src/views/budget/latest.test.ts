import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { Latest } from "./latest";

interface Asked {
  question: number;
  signal: AbortSignal;
  answer: (text: string) => void;
  fail: (error: Error) => void;
}

function setUp() {
  const asked: Asked[] = [];
  const told: [number, string][] = [];
  const latest = new Latest<number, string>(
    (question, signal) =>
      new Promise((answer, fail) => {
        asked.push({ question, signal, answer, fail });
        signal.addEventListener("abort", () => fail(new DOMException("", "AbortError")));
      }),
    (question, answer) => told.push([question, answer]),
    (question, error) => told.push([question, `failed: ${error.message}`]),
    400,
  );
  return { asked, told, latest };
}

const settled = () => vi.advanceTimersByTimeAsync(0);

describe("questions that come faster than answers", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("asks one at a time, and the newest next", async () => {
    const { asked, told, latest } = setUp();
    latest.put(1);
    latest.put(2);
    latest.put(3);
    expect(asked.map((one) => one.question)).toEqual([1]);
    asked[0]?.answer("one");
    await settled();
    expect(asked.map((one) => one.question)).toEqual([1, 3]);
    asked[1]?.answer("three");
    await settled();
    expect(told).toEqual([
      [1, "one"],
      [3, "three"],
    ]);
  });

  it("gives up one that takes too long as soon as there is a newer one", async () => {
    const { asked, told, latest } = setUp();
    latest.put(1);
    await vi.advanceTimersByTimeAsync(1000);
    expect(asked[0]?.signal.aborted).toBe(false);
    latest.put(2);
    await vi.advanceTimersByTimeAsync(200);
    expect(asked[0]?.signal.aborted).toBe(true);
    asked[1]?.answer("two");
    asked[0]?.answer("late");
    await settled();
    expect(told).toEqual([[2, "two"]]);
  });

  it("waits for a slow answer that nobody has replaced", async () => {
    const { asked, told, latest } = setUp();
    latest.put(1);
    await vi.advanceTimersByTimeAsync(5000);
    asked[0]?.answer("one");
    await settled();
    expect(told).toEqual([[1, "one"]]);
  });

  it("goes on after a failure", async () => {
    const { asked, told, latest } = setUp();
    latest.put(1);
    latest.put(2);
    asked[0]?.fail(new Error("no"));
    await settled();
    asked[1]?.answer("two");
    await settled();
    expect(told).toEqual([
      [1, "failed: no"],
      [2, "two"],
    ]);
  });

  it("says nothing after it was stopped", async () => {
    const { asked, told, latest } = setUp();
    latest.put(1);
    latest.put(2);
    latest.stop();
    await settled();
    expect(asked).toHaveLength(1);
    expect(told).toEqual([]);
  });
});
