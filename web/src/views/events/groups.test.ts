import { describe, expect, test } from "vitest";

import type { Event, EventPart } from "../../api/types";
import {
  eventsCsv,
  found,
  fromQuery,
  groupOf,
  saveWords,
  shownText,
  toggled,
  toQuery,
} from "./groups";

const event = (
  number: number,
  kind: Event["kind"],
  text = "",
  with_: Partial<Event> = {},
): Event => ({
  number,
  at: 1_790_000_000 + number,
  kind,
  text,
  parts: [{ text }],
  job: null,
  node: null,
  data: {},
  ...with_,
});

describe("groups", () => {
  test("failures, shortages and lost nodes are trouble, whoever they are about", () => {
    const kinds = ["trouble", "failed", "retry", "shortage", "node_lost", "node_leaving"] as const;
    for (const kind of kinds) {
      expect(groupOf(event(1, kind, "", { job: "1", node: 1 }))).toBe("trouble");
    }
  });

  test("kinds that nobody knows yet go by what they name", () => {
    const newer = "new_kind" as Event["kind"]; // of a service that is newer than the page
    for (const kind of ["other", newer] as const) {
      expect(groupOf(event(1, kind, "", { job: "1" }))).toBe("jobs");
      expect(groupOf(event(1, kind, "", { node: 1 }))).toBe("nodes");
      expect(groupOf(event(1, kind))).toBe("money");
    }
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
  test("many seconds are told as hours and minutes, few as they are", () => {
    const words = (...parts: EventPart[]) => parts.map(shownText).join("");
    expect(words({ text: "saves " }, { text: "212 s", seconds: 212.4 })).toBe("saves 3.5 min");
    expect(words({ text: "after " }, { text: "19558 s", seconds: 19558 })).toBe("after 5 h 26 min");
    expect(words({ text: "saves " }, { text: "3,917 s", seconds: 3917 })).toBe("saves 1 h 5 min");
  });

  test("what is no time of the service's own stays as it was said", () => {
    expect(shownText({ text: "no answer in 7200 s" })).toBe("no answer in 7200 s");
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
