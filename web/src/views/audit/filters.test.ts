// @vitest-environment node
import { expect, test } from "vitest";

import type { AuditLine } from "../../api/types";
import { aboutOf, fitting, fromQuery, placeOf, toggled, toQuery } from "./filters";

function line(what: string, with_: Partial<AuditLine> = {}): AuditLine {
  return {
    number: 1,
    at: 0,
    who: "mia",
    role: "admin",
    address: "10.0.0.7",
    what,
    subject: "",
    before: null,
    after: null,
    result: "done",
    count: 1,
    ...with_,
  };
}
const LINES = [
  line("submit", { subject: "17" }),
  line("budget", { before: { budget_per_hour: 4 }, after: { budget_per_hour: 5 } }),
  line("token add", { subject: "eve" }),
  line("class retry", { subject: "bert" }),
  line("stop", { subject: "18", result: "it is not yours" }),
];

test("every line is about something", () => {
  expect(LINES.map(aboutOf)).toEqual(["jobs", "money", "access", "other", "refused"]);
});

test("what is asked for is kept in the address", () => {
  const asked = { about: ["money" as const, "refused" as const], who: "mia", search: "17" };
  expect(toQuery(asked)).toBe("about=money,refused&who=mia&search=17");
  expect(fromQuery(toQuery(asked))).toEqual(asked);
  expect(fromQuery("about=nonsense")).toEqual({ about: [], who: "", search: "" });
  expect(toggled(toggled(asked, "money"), "jobs").about).toEqual(["refused", "jobs"]);
});

test("lines fit by what they are about and by their words", () => {
  const none = fromQuery("");
  expect(fitting(LINES, none)).toHaveLength(5);
  expect(fitting(LINES, fromQuery("about=money"))).toEqual([LINES[1]]);
  expect(fitting(LINES, fromQuery("search=BERT"))).toEqual([LINES[3]]);
  expect(fitting(LINES, fromQuery("search=$5.00"))).toEqual([LINES[1]]);
});

test("jobs, sweeps and classes have a page; what was refused leads nowhere", () => {
  expect(LINES.map(placeOf)).toEqual([["jobs", "17"], null, null, ["classes", "bert"], null]);
  expect(placeOf(line("sweep stop", { subject: "s3" }))).toEqual(["jobs", "s3"]);
});
