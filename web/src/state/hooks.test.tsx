import { act, cleanup, renderHook, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { linkTo, live, useAnswer, usePicture, useQuery, useRoute } from "./hooks";
import { NOTHING } from "./live";
import { client } from "./session";

beforeEach(() => {
  window.location.hash = "";
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

function go(hash: string) {
  window.location.hash = hash;
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

test("the address is taken apart, and put together the same way", () => {
  const { result } = renderHook(() => useRoute());
  act(() => go(linkTo("classes", "a/b c%")));
  expect(result.current).toEqual(["classes", "a/b c%"]);
  act(() => go("#/jobs/50%?sort=cost"));
  expect(result.current).toEqual(["jobs", "50%"]);
});

test("what follows the question mark can be put there without a new page", () => {
  window.location.hash = "#/jobs";
  const { result } = renderHook(() => useQuery());
  act(() => result.current[1]("sort=-cost"));
  expect(result.current[0]).toBe("sort=-cost");
  expect(window.location.hash).toBe("#/jobs?sort=-cost");
});

test("the last answer stays while the next is on its way, and when that fails", async () => {
  const get = vi.spyOn(client, "get").mockResolvedValueOnce("one");
  const { result, rerender } = renderHook(({ version }) => useAnswer<string>("/plan", version), {
    initialProps: { version: 1 },
  });
  expect(result.current).toMatchObject({ data: null, loading: true });
  await waitFor(() => expect(result.current.data).toBe("one"));
  get.mockRejectedValueOnce(new Error("away"));
  rerender({ version: 2 });
  expect(result.current).toMatchObject({ data: "one", loading: false });
  await waitFor(() => expect(result.current.error?.message).toBe("away"));
  expect(result.current.data).toBe("one");
});

test("another question does not show the answer to the one before", async () => {
  vi.spyOn(client, "get").mockImplementation((path) =>
    path === "/a" ? Promise.resolve("a" as never) : new Promise(() => undefined),
  );
  const { result, rerender } = renderHook(({ path }) => useAnswer<string>(path), {
    initialProps: { path: "/a" },
  });
  await waitFor(() => expect(result.current.data).toBe("a"));
  rerender({ path: "/b" });
  expect(result.current).toMatchObject({ data: null, loading: true });
});

interface Asked {
  path: string;
  signal: AbortSignal | undefined;
  answer: (said: unknown) => void;
  fail: (problem: unknown) => void;
}

/** What is asked, to be answered as the test says. */
function asking(): Asked[] {
  const asked: Asked[] = [];
  vi.spyOn(client, "get").mockImplementation(
    (path, signal) =>
      new Promise((answer, fail) => {
        asked.push({ path, signal, answer: answer, fail });
      }),
  );
  return asked;
}

async function after(ms: number, then: () => void = () => undefined): Promise<void> {
  await act(async () => {
    await vi.advanceTimersByTimeAsync(ms);
    then();
    await vi.advanceTimersByTimeAsync(0);
  });
}

test("a question is given up by who leaves", async () => {
  const asked = asking();
  const { unmount } = renderHook(() => useAnswer("/plan", 0, 1000));
  expect(asked[0]?.signal?.aborted).toBe(false);
  unmount();
  await waitFor(() => expect(asked[0]?.signal?.aborted).toBe(true));
});

test("the next round waits for the answer, and then for 20 times what that took", async () => {
  vi.useFakeTimers();
  const asked = asking();
  const { result } = renderHook(() => useAnswer<string>("/plan", 0, 1000));
  await after(30_000);
  expect(asked.map(({ signal }) => signal?.aborted)).toEqual([false]);
  await after(0, () => asked[0]?.answer("one"));
  expect(result.current.data).toBe("one");
  await after(599_999);
  expect(asked).toHaveLength(1);
  await after(1);
  expect(asked).toHaveLength(2);
  await after(10, () => asked[1]?.answer("two"));
  await after(1000);
  expect(asked).toHaveLength(3);
});

test("two parts of a page ask once, and both hear it", async () => {
  const asked = asking();
  const { result, rerender } = renderHook(
    ({ version }) => [useAnswer("/plan", version, 9000), useAnswer("/plan", version)],
    { initialProps: { version: 1 } },
  );
  act(() => asked[0]?.answer("one"));
  await waitFor(() => expect(result.current.map(({ data }) => data)).toEqual(["one", "one"]));
  rerender({ version: 2 });
  act(() => asked[1]?.answer("two"));
  await waitFor(() => expect(result.current.map(({ data }) => data)).toEqual(["two", "two"]));
  expect(asked).toHaveLength(2);
});

test("what changes while an answer is on its way is asked for after it", async () => {
  vi.useFakeTimers();
  const asked = asking();
  const { result, rerender } = renderHook(({ version }) => useAnswer<string>("/plan", version), {
    initialProps: { version: 1 },
  });
  for (const version of [2, 3, 4]) rerender({ version });
  await after(50, () => asked[0]?.answer("of 1"));
  expect(result.current.data).toBe("of 1");
  await after(50);
  expect(asked).toHaveLength(2);
  await after(0, () => asked[1]?.answer("of 4"));
  await after(60_000);
  expect(result.current.data).toBe("of 4");
  expect(asked).toHaveLength(2);
});

test("a tab in the background asks nothing, and does so once it is looked at", async () => {
  vi.useFakeTimers();
  const asked = asking();
  renderHook(() => useAnswer<string>("/plan", 0, 1000));
  await after(0, () => asked[0]?.answer("one"));
  const state = vi.spyOn(document, "visibilityState", "get").mockReturnValue("hidden");
  await after(60_000);
  expect(asked).toHaveLength(1);
  state.mockReturnValue("visible");
  await after(0, () => document.dispatchEvent(new Event("visibilitychange")));
  expect(asked).toHaveLength(2);
});

test("what failed is asked again as soon as the service is back", async () => {
  const asked = asking();
  live.picture = NOTHING;
  const { result } = renderHook(() => useAnswer<string>("/plan", 0, 300_000));
  act(() => asked[0]?.fail(new Error("away")));
  await waitFor(() => expect(result.current.error?.message).toBe("away"));
  act(() => {
    live.picture = { ...NOTHING, streams: live.picture.streams + 1 };
    (live as unknown as { tell: () => void }).tell();
  });
  await waitFor(() => expect(asked).toHaveLength(2));
  act(() => asked[1]?.answer("there"));
  await waitFor(() => expect(result.current).toMatchObject({ data: "there", error: null }));
});

test("what a service that is back has not got is not asked for", async () => {
  const asked = asking();
  live.picture = { ...NOTHING, plan: 7, streams: 41 };
  const { result } = renderHook(() => useAnswer(usePicture().plan === null ? null : "/frontier"));
  act(() => asked[0]?.fail(new Error("away")));
  await waitFor(() => expect(result.current.error?.message).toBe("away"));
  act(() => {
    live.picture = { ...NOTHING, streams: 42 };
    (live as unknown as { tell: () => void }).tell();
  });
  await new Promise((done) => setTimeout(done, 20));
  expect(asked).toHaveLength(1);
});
