import { act, cleanup, renderHook, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { linkTo, useAnswer, useQuery, useRoute } from "./hooks";
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

test("a question is given up by who leaves, and asked again in time by who stays", async () => {
  vi.useFakeTimers();
  const signals: AbortSignal[] = [];
  vi.spyOn(client, "get").mockImplementation((_path, signal) => {
    if (signal) signals.push(signal);
    return new Promise(() => undefined);
  });
  const { unmount } = renderHook(() => useAnswer("/plan", 0, 1000));
  await act(() => vi.advanceTimersByTimeAsync(1000));
  expect(signals.map((signal) => signal.aborted)).toEqual([true, false]);
  unmount();
  expect(signals.at(-1)?.aborted).toBe(true);
});
