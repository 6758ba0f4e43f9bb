import { describe, expect, test } from "vitest";

import type { Event } from "../../api/types";
import {
  eventsCsv,
  found,
  fromQuery,
  groupOf,
  pieces,
  readable,
  saveWords,
  toggled,
  toQuery,
} from "./groups";

const event = (number: number, kind: string, text = "", with_: Partial<Event> = {}): Event => ({
  number,
  at: 1_790_000_000 + number,
  kind,
  text,
  job: null,
  node: null,
  data: {},
  ...with_,
});

describe("groups", () => {
  test("failures, shortages and lost nodes are trouble, whoever they are about", () => {
    for (const kind of ["trouble", "failed", "retry", "shortage", "node_lost", "node_leaving"]) {
      expect(groupOf(event(1, kind, "", { job: "1", node: 1 }))).toBe("trouble");
    }
  });

  test("kinds that nobody knows yet go by what they name", () => {
    expect(groupOf(event(1, "new_kind", "", { job: "1" }))).toBe("jobs");
    expect(groupOf(event(1, "new_kind", "", { node: 1 }))).toBe("nodes");
    expect(groupOf(event(1, "new_kind"))).toBe("money");
  });

  test("are counted before one of them is chosen, and the newest comes first", () => {
    const events = [event(1, "submitted", "job 1"), event(2, "planned"), event(3, "started")];
    const { events: shown, counts } = found(events, { groups: ["jobs"], search: "" });
    expect(shown.map(({ number }) => number)).toEqual([3, 1]);
    expect(counts).toEqual({ jobs: 2, nodes: 0, money: 1, trouble: 0 });
  });

  test("a search looks at the words and the kind", () => {
    const events = [event(1, "node_ready", "node 3 is ready"), event(2, "planned", "plan 1")];
    const numbers = (search: string) =>
      found(events, { groups: [], search }).events.map(({ number }) => number);
    expect(numbers("NODE 3")).toEqual([1]);
    expect(numbers("new plan")).toEqual([2]);
  });

  test("the address keeps them", () => {
    const filters = toggled(toggled({ groups: [], search: "a&b" }, "jobs"), "trouble");
    expect(fromQuery(toQuery(filters))).toEqual(filters);
    expect(toQuery({ groups: [], search: "" })).toBe("");
  });
});

describe("words", () => {
  test("jobs and nodes in them can be linked to", () => {
    expect(pieces("job 17 moves to node 3: ok")).toEqual([
      { text: "job 17", job: "17" },
      { text: " moves to " },
      { text: "node 3", node: "3" },
      { text: ": ok" },
    ]);
    expect(pieces("budget $1/h → $2/h")).toEqual([{ text: "budget $1/h → $2/h" }]);
  });

  test("many seconds are told as hours and minutes, few as they are", () => {
    expect(readable("saves 212 s for $0.31")).toBe("saves 212 s for $0.31");
    expect(readable("succeeded after 19558 s for $5")).toBe("succeeded after 5 h 26 min for $5");
    expect(readable("saves 3,917 s")).toBe("saves 1 h 5 min");
  });

  test("that are saved are counted before they are", () => {
    expect(saveWords(200, 12_345)).toBe("Save 200 of 12,345 as CSV");
    expect(saveWords(7, 7)).toBe("Save all 7 as CSV");
  });

  test("go into a file as the service said them", () => {
    const text = eventsCsv([event(1, "failed", 'job 1 said "no", twice', { job: "1" })]);
    expect(text).toBe(
      'number,time (UTC),kind,job,node,text\r\n1,2026-09-21T14:13:21.000Z,failed,1,,"job 1 said ""no"", twice"\r\n',
    );
  });
});
