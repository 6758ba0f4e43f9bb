import { act, cleanup, renderHook, waitFor } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";

import type { History } from "../api/types";
import { live } from "./hooks";
import { NOTHING } from "./live";
import { cropped, monthOf, rounded, useCost } from "./ranges";
import { client } from "./session";

afterEach(() => {
  cleanup();
  live.picture = NOTHING;
});

function history(since: number, empty: number, points = 160): History {
  const values = Array.from({ length: points }, (_, n) => (n < empty ? 0 : 5));
  const noted = values.map((value) => (value > 0 ? 10 : null));
  return {
    since,
    until: since + points,
    step_s: 1,
    spend_per_hour: values,
    average_spend_per_hour: noted,
    budget_per_hour: noted,
    gpus: {},
    active_jobs: noted,
    waiting_jobs: noted,
    now: since + points,
  };
}

async function asked(first: History): Promise<string[]> {
  const paths: string[] = [];
  await cropped(
    (path) => {
      paths.push(path);
      return Promise.resolve(first);
    },
    first.since,
    60,
  );
  return paths;
}

it("asks again from when there was anything, if most of it is empty", async () => {
  expect(await asked(history(1020, 120))).toEqual([
    "/history?since=1020&points=160",
    "/history?since=1140&points=160",
  ]);
});

it("asks once where there is a whole history, or none at all", async () => {
  expect(await asked(history(1000, 3))).toHaveLength(1);
  expect(await asked(history(1000, 160))).toHaveLength(1);
});

it("rounds beginnings, so that many pages ask the same", () => {
  expect([rounded(119, 60), rounded(120, 60), rounded(-5, 60)]).toEqual([60, 120, 0]);
});

it("is of the calendar month in UTC, over the year's end too", () => {
  const december = monthOf(Date.UTC(2026, 11, 31, 23) / 1000);
  expect(december).toEqual({
    begin: Date.UTC(2026, 11, 1) / 1000,
    end: Date.UTC(2027, 0, 1) / 1000,
  });
});

it("asks nothing before the server's time is known, then once for all who want to know", async () => {
  const get = vi.spyOn(client, "get").mockResolvedValue({ total_usd: 5 });
  const { result, rerender } = renderHook(() => [useCost("day", 1), useCost("day", 1)]);
  expect(get).not.toHaveBeenCalled();
  act(() => {
    live.picture = { ...NOTHING, connection: "gone", heardAt: 1, now: 1_000_019 };
  });
  rerender();
  await waitFor(() => expect(result.current[1]?.data?.total_usd).toBe(5));
  expect(get.mock.calls.map(([path]) => path)).toEqual(["/cost?since=913560"]);
});
