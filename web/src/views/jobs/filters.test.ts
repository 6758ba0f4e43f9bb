import { describe, expect, test } from "vitest";

import {
  chosen,
  endedPath,
  fromQuery,
  merged,
  NEWEST,
  toggled,
  toQuery,
  withEnded,
  type Filters,
} from "./filters";
import { job, mapped } from "./sample";

const ALL: Filters = { states: [], jobClass: "", search: "", ended: false, order: NEWEST };

describe("the address", () => {
  test("says nothing where nothing is filtered", () => {
    expect(toQuery(ALL)).toBe("");
    expect(fromQuery("")).toEqual(ALL);
  });

  test("keeps every filter, so that a link shows the same list", () => {
    const filters: Filters = {
      states: ["waiting", "failed"],
      jobClass: "bert & co",
      search: "50% of=x",
      ended: true,
      order: { key: "cost", down: false },
    };
    expect(fromQuery(toQuery(filters))).toEqual(filters);
  });

  test("with a state of ended jobs means that ended ones are wanted", () => {
    expect(fromQuery("state=failed").ended).toBe(true);
    expect(fromQuery("state=running").ended).toBe(false);
  });

  test("with states that nobody knows is read without them", () => {
    expect(fromQuery("state=asleep,running").states).toEqual(["running"]);
  });
});

describe("choosing states", () => {
  test("a second press takes a state out again", () => {
    const once = toggled(ALL, "running");
    expect(once.states).toEqual(["running"]);
    expect(toggled(once, "running").states).toEqual([]);
  });

  test("leaving ended jobs out leaves their states out too", () => {
    const both = toggled(toggled(ALL, "failed"), "running");
    expect(both.ended).toBe(true);
    expect(withEnded(both, false)).toMatchObject({ states: ["running"], ended: false });
  });
});

describe("what the service is asked for", () => {
  test("nothing while only active jobs are wanted: the picture has them", () => {
    expect(endedPath(ALL, null)).toBeNull();
    expect(endedPath({ ...ALL, ended: true, states: ["running"] }, null)).toBeNull();
  });

  test("ended jobs only, with the filters, page by page", () => {
    const filters = { ...ALL, ended: true, jobClass: "bert", search: " a b " };
    const asked = new URLSearchParams(endedPath(filters, 41)?.split("?")[1]);
    expect(Object.fromEntries(asked)).toEqual({
      all: "true",
      limit: "200",
      state: "succeeded,failed,stopped",
      class: "bert",
      search: "a b",
      before: "41",
    });
  });

  test("only the ended states that were chosen", () => {
    const path = endedPath({ ...ALL, ended: true, states: ["running", "failed"] }, null);
    expect(new URLSearchParams(path?.split("?")[1]).get("state")).toBe("failed");
  });
});

describe("the list", () => {
  test("finds words in name, class and number, whatever their case", () => {
    const jobs = [job(1, { name: "Alpha" }), job(2, { class: "alphabet" }), job(37)];
    const ids = (search: string) => chosen(jobs, { ...ALL, search }).rows.map((row) => row.id);
    expect(ids("ALPHA")).toEqual(["1", "2"]);
    expect(ids("37")).toEqual(["37"]);
    expect(ids(" ")).toEqual(["1", "2", "37"]);
  });

  test("counts states before one of them is chosen, and after class and search", () => {
    const jobs = [job(1), job(2, { state: "waiting" }), job(3, { class: "bert" })];
    const { rows, counts } = chosen(jobs, { ...ALL, jobClass: "resnet18", states: ["waiting"] });
    expect(rows.map((row) => row.id)).toEqual(["2"]);
    expect(counts).toEqual({ running: 1, waiting: 1 });
  });

  test("has each job once, as it was heard of last", () => {
    const active = mapped(job(3));
    const seen = mapped(job(2, { state: "failed" }));
    const stored = [job(3, { state: "succeeded" }), job(2, { state: "stopped" }), job(1)];
    const states = merged(active, seen, stored).map((row) => [row.id, row.state]);
    expect(states).toEqual([
      ["3", "running"],
      ["2", "failed"],
      ["1", "running"],
    ]);
  });
});
