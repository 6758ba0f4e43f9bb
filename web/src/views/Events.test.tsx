import { act, cleanup, render, screen, waitFor } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { ApiError } from "../api/client";
import type { Event, EventList, EventPart } from "../api/types";
import { live } from "../state/hooks";
import { NOTHING } from "../state/live";
import { client } from "../state/session";
import { Events } from "./Events";

const event = (
  number: number,
  kind: Event["kind"],
  text: string,
  parts: EventPart[] = [{ text }],
): Event => ({
  number,
  at: 1_790_000_000 + number,
  kind,
  text,
  parts,
  job: null,
  node: null,
  data: {},
});
const list = (...events: Event[]): EventList => ({ events, last: events.at(-1)?.number ?? 0 });
const texts = () => [...document.querySelectorAll(".event-text")].map((each) => each.textContent);

beforeEach(() => {
  window.location.hash = "#/events";
});
afterEach(() => {
  cleanup();
  live.picture = NOTHING;
});

test("events come newest first, with links to whom they are about, and trouble marked", async () => {
  vi.spyOn(client, "get").mockResolvedValue(
    list(
      event(1, "started", "job 17 → 4×T4", [{ text: "job 17", job: "17" }, { text: " → 4×T4" }]),
      event(2, "node_lost", "node 3 is lost", [{ text: "node 3", node: 3 }, { text: " is lost" }]),
    ),
  );
  render(<Events />);
  await waitFor(() => expect(texts()).toEqual(["node 3 is lost", "job 17 → 4×T4"]));
  expect(screen.getByRole("link", { name: "job 17" }).getAttribute("href")).toBe("#/jobs/17");
  expect(screen.getByRole("link", { name: "node 3" }).getAttribute("href")).toBe("#/cluster/3");
  expect(screen.getByText("node lost").textContent).toContain("⚠");
});

test("what happens while one looks is added, and asked for once", async () => {
  const get = vi
    .spyOn(client, "get")
    .mockResolvedValueOnce(list(event(4, "started", "one")))
    .mockResolvedValueOnce(list(event(5, "started", "two")));
  const { rerender } = render(<Events />);
  await waitFor(() => expect(texts()).toEqual(["one"]));
  live.picture = { ...NOTHING, lastEvent: 5 };
  act(() => rerender(<Events />));
  await waitFor(() => expect(texts()).toEqual(["two", "one"]));
  expect(get.mock.calls.map(([path]) => path)).toEqual([
    "/events?limit=200",
    "/events?after=4&limit=1000",
  ]);
});

test("older ones are there for the asking", async () => {
  vi.spyOn(client, "get")
    .mockResolvedValueOnce(list(event(3, "started", "three")))
    .mockResolvedValueOnce(list(event(1, "started", "one"), event(2, "started", "two")));
  render(<Events />);
  await userEvent.click(await screen.findByRole("button", { name: "Show older ones" }));
  await waitFor(() => expect(texts()).toEqual(["three", "two", "one"]));
  expect(screen.queryByRole("button", { name: "Show older ones" })).toBeNull();
});

test("a group that is pressed leaves the others out", async () => {
  vi.spyOn(client, "get").mockResolvedValue(
    list(event(1, "started", "job 17 → 4×T4"), event(2, "budget", "budget $1/h → $2/h")),
  );
  render(<Events />);
  await userEvent.click(await screen.findByRole("button", { name: /Money and plans\s*1/ }));
  expect(texts()).toEqual(["budget $1/h → $2/h"]);
  expect(window.location.hash).toBe("#/events?group=money");
});

test("where the service says no, its words are shown and one can try again", async () => {
  vi.spyOn(client, "get")
    .mockRejectedValueOnce(new ApiError(503, "the database is in trouble"))
    .mockResolvedValueOnce(list());
  render(<Events />);
  expect((await screen.findByRole("alert")).textContent).toContain("the database is in trouble");
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  expect(await screen.findByText("Nothing has happened yet")).toBeTruthy();
});
