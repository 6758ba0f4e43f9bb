import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";

import { sorted, Table, type Column } from "./Table";

interface Row {
  id: number;
  cost: number | null;
  name: string;
}

const COLUMNS: Column<Row>[] = [
  { key: "name", head: "Name", track: "1fr", cell: (row) => row.name, value: (row) => row.name },
  { key: "cost", head: "Cost", track: "1fr", cell: (row) => row.cost, value: (row) => row.cost },
];

function rows(count: number): Row[] {
  return Array.from({ length: count }, (_, id) => ({ id, cost: id, name: `job ${id}` }));
}

function shown(list: readonly Row[], more: { onOpen?: (row: Row) => void; onEnd?: () => void }) {
  const onOrder = vi.fn();
  const order = { key: "name", down: false };
  const id = (row: Row) => String(row.id);
  render(
    <Table label="Jobs" {...{ rows: list, columns: COLUMNS, id, order, onOrder }} {...more} />,
  );
  return onOrder;
}

afterEach(cleanup);

test("nulls come last, whichever way it goes", () => {
  const list = [3, null, 1].map((cost, id) => ({ id, cost, name: "" }));
  const costs = (down: boolean) =>
    sorted(list, COLUMNS, { key: "cost", down }).map((row) => row.cost);
  expect(costs(false)).toEqual([1, 3, null]);
  expect(costs(true)).toEqual([3, 1, null]);
});

test("names with numbers are sorted by the number, and the rows given are left alone", () => {
  const list = [{ name: "job 10" }, { name: "job 9" }].map((row) => ({ ...row, id: 0, cost: 0 }));
  const found = sorted(list, COLUMNS, { key: "name", down: false });
  expect(found.map((row) => row.name)).toEqual(["job 9", "job 10"]);
  expect(list[0]?.name).toBe("job 10");
});

test("of ten thousand rows only those in sight are in the page", () => {
  shown(rows(10_000), {});
  expect(screen.getAllByRole("row").length).toBeLessThan(100);
  expect(screen.getByRole("table").getAttribute("aria-rowcount")).toBe("10001");
});

test("scrolling brings other rows into the page", () => {
  shown(rows(10_000), {});
  const body = screen.getByRole("rowgroup");
  body.scrollTop = 40 * 5000;
  fireEvent.scroll(body);
  expect(screen.getByText("job 5000")).toBeTruthy();
  expect(screen.queryByText("job 0")).toBeNull();
});

test("a row opens by a click and by Enter", async () => {
  const open = vi.fn();
  shown(rows(3), { onOpen: open });
  await userEvent.click(screen.getByText("job 1"));
  screen.getAllByRole("row")[3]?.focus();
  await userEvent.keyboard("{Enter}");
  expect(open.mock.calls.map(([row]) => (row as Row).id)).toEqual([1, 2]);
});

test("a head asks for its order, and for the other way round at the second time", async () => {
  const ask = shown(rows(3), {});
  await userEvent.click(screen.getByRole("button", { name: "Cost" }));
  expect(ask).toHaveBeenLastCalledWith({ key: "cost", down: true });
  await userEvent.click(screen.getByRole("button", { name: /Name/ }));
  expect(ask).toHaveBeenLastCalledWith({ key: "name", down: true });
  const head = screen.getByRole("columnheader", { name: /Name/ });
  expect(head.getAttribute("aria-sort")).toBe("ascending");
});
