import { act, cleanup, renderHook, waitFor } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";

import { ApiError } from "../../api/client";
import type { JobList } from "../../api/types";
import { live } from "../../state/hooks";
import { NOTHING } from "../../state/live";
import { client } from "../../state/session";
import { useEnded } from "./ended";
import { fromQuery } from "./filters";
import { job } from "./sample";

const page = (before: number | null, ...ids: number[]): JobList => ({
  jobs: ids.map((id) => job(id, { state: "failed" })),
  now: 5000,
  before,
});
const FILTERS = fromQuery("ended=1");

afterEach(() => {
  cleanup();
  live.picture = NOTHING;
});

test("pages follow each other until there are no more", async () => {
  const get = vi
    .spyOn(client, "get")
    .mockResolvedValueOnce(page(8, 9, 8))
    .mockResolvedValueOnce(page(null, 7));
  const { result } = renderHook(() => useEnded(FILTERS));
  await waitFor(() => expect(result.current.rows.map((row) => row.id)).toEqual(["9", "8"]));
  expect(result.current.more).toBe(true);
  act(() => result.current.next());
  await waitFor(() => expect(result.current.rows.map((row) => row.id)).toEqual(["9", "8", "7"]));
  expect(get.mock.calls[1]?.[0]).toContain("before=8");
  act(() => result.current.next());
  expect(get).toHaveBeenCalledTimes(2);
});

test("a page that did not come is asked for again, and what is there stays", async () => {
  vi.spyOn(client, "get")
    .mockResolvedValueOnce(page(8, 9))
    .mockRejectedValueOnce(new ApiError(503, "the database is in trouble"))
    .mockResolvedValueOnce(page(null, 7));
  const { result } = renderHook(() => useEnded(FILTERS));
  await waitFor(() => expect(result.current.more).toBe(true));
  act(() => result.current.next());
  await waitFor(() => expect(result.current.error?.message).toMatch(/database/));
  expect(result.current.rows).toHaveLength(1);
  act(() => result.current.again());
  await waitFor(() => expect(result.current.rows.map((row) => row.id)).toEqual(["9", "7"]));
  expect(result.current.error).toBeNull();
});

const stream = (streams: number) => {
  live.picture = { ...NOTHING, connection: "live", streams };
};

test("after a new stream the list begins anew: some may have ended unseen", async () => {
  vi.spyOn(client, "get")
    .mockResolvedValueOnce(page(null, 9))
    .mockResolvedValueOnce(page(null, 12, 9));
  stream(1);
  const { result, rerender } = renderHook(() => useEnded(FILTERS));
  await waitFor(() => expect(result.current.rows).toHaveLength(1));
  stream(2); // nobody said that the one before was gone: the tab was in the background
  rerender();
  await waitFor(() => expect(result.current.rows.map((row) => row.id)).toEqual(["12", "9"]));
});

test("the first stream is no reason to ask twice", async () => {
  const get = vi.spyOn(client, "get").mockResolvedValue(page(null, 9));
  const { result, rerender } = renderHook(() => useEnded(FILTERS));
  stream(1);
  rerender();
  await waitFor(() => expect(result.current.rows).toHaveLength(1));
  expect(get).toHaveBeenCalledOnce();
});
