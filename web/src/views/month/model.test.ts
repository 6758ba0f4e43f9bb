import { expect, test } from "vitest";

import type { Statement, StatementGroup } from "../../api/types";
import { groupsOf, isMonth, later, monthWords, present } from "./model";

test("a month has a name that addresses keep, and neighbours over the year's end", () => {
  expect(present(Date.UTC(2026, 11, 31, 23) / 1000)).toBe("2026-12");
  expect(later("2026-12", 1)).toBe("2027-01");
  expect(later("2026-01", -1)).toBe("2025-12");
  expect(monthWords("2026-11")).toBe("November 2026");
  expect(["2026-11", "2026-13", "2026-1", "x"].map(isMonth)).toEqual([true, false, false, false]);
});

test("lists in which nobody is named are left out, and the dearest come first", () => {
  const row = (name: string | null, total_usd: number) => ({ name, total_usd }) as StatementGroup;
  const found = groupsOf({
    by_payer: [row(null, 9)],
    by_team: [row("", 9)],
    by_user: [row("mia", 1), row(null, 2), row("eve", 3)],
    by_class: [row("bert", 9)],
  } as unknown as Statement);
  expect(found.map(({ title }) => title)).toEqual(["By user", "By class"]);
  expect(found[0]?.rows.map(({ name }) => name)).toEqual(["eve", null, "mia"]);
});
