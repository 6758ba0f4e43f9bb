import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";

import { Group } from "./Group";
import type { Row } from "./model";

afterEach(cleanup);

function shown(row: Partial<Row>) {
  const rows = [{ name: "vision", jobs: 3, total_usd: 0.01, ...row }];
  render(<Group group={{ title: "By payer", nobody: "nobody’s part", rows }} total={1} />);
  return screen.getByRole("heading", { name: "By payer" }).closest("section");
}

it("has a row of its own where rights are shown, which are too wide for half of a page", () => {
  expect(shown({ budget_usd: 400, with_parts_usd: 8 })?.className).toBe("card wide");
  expect(screen.getByText("$400.00: 2 % spent")).toBeTruthy();
});

it("shows less than ten cents by what was rounded to cents", () => {
  const exact_usd = { total: 0.0142, held: 0.0142, idle: 0, booting: 0 };
  expect(shown({ exact_usd })?.className).toBe("card");
  expect(screen.getByText("$0.014")).toBeTruthy();
});
