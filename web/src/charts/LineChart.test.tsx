import { cleanup, render, screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { Series } from "./data";
import { LineChart } from "./LineChart";

/** Everything is 600 pixels wide. */
class WideObserver {
  constructor(private readonly tell: (entries: { contentRect: { width: number } }[]) => void) {}
  observe() {
    this.tell([{ contentRect: { width: 600 } }]);
  }
  disconnect() {
    /* nothing to give back */
  }
}

beforeEach(() => void vi.stubGlobal("ResizeObserver", WideObserver));
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const RENTED: Series = {
  name: "rented",
  color: "red",
  kind: "step",
  points: [
    [0, 4],
    [10, 8],
    [20, 8],
  ],
};
const MEASURED: Series = {
  name: "measured",
  color: "blue",
  kind: "dots",
  points: [[10, 6]],
  dots: [{ radius: 7, text: "3 reports" }],
};

function shown() {
  const x = { label: "time", unit: "seconds" } as const;
  return render(
    <LineChart
      title="GPUs"
      x={x}
      y={{ label: "GPUs" }}
      series={[RENTED, MEASURED]}
      levels={[{ y: 10, text: "at most", color: "black" }]}
      marks={[{ x: 20, y: 8, text: "now", color: "green" }]}
    />,
  );
}

test("a chart says in words where each of its lines ends", () => {
  shown();
  const chart = screen.getByRole("img", { name: /^GPUs:/ });
  expect(chart.getAttribute("aria-label")).toBe("GPUs: rented 8 at 20 s, measured 6 at 10 s");
});

test("the arrow keys read out what a mouse would show, and Escape ends it", async () => {
  shown();
  screen.getByRole("img", { name: /^GPUs:/ }).focus();
  await userEvent.keyboard("{End}{ArrowLeft}");
  expect(screen.getByRole("status").textContent).toBe("10 s rented: 8 measured: 6 (3 reports)");
  await userEvent.keyboard("{ArrowLeft}");
  expect(screen.getByRole("status").textContent).toContain("rented: 4");
  await userEvent.keyboard("{Escape}");
  expect(screen.queryByRole("status")).toBeNull();
});

test("levels and marks are inside the axes, with their words", () => {
  const { container } = shown();
  expect(screen.getByText("at most")).toBeTruthy();
  expect(screen.getByText("now")).toBeTruthy();
  const heights = [...container.querySelectorAll("g[transform]")].map((element) =>
    Number(/translate\(\S+ ([\d.]+)\)/.exec(element.getAttribute("transform") ?? "")?.[1]),
  );
  expect(heights.every((y) => y > 0 && y < 240)).toBe(true);
});

test("a dot is as large as it is said to be", () => {
  const { container } = shown();
  expect([...container.querySelectorAll('circle[fill="blue"]')].map((e) => e.getAttribute("r")))
    // The first is the legend's.
    .toEqual(["4", "7"]);
});

test("nothing to show yet is said, and draws nothing that is not a number", () => {
  const { container } = render(
    <LineChart title="Empty" x={{ label: "" }} y={{ label: "" }} series={[]} />,
  );
  expect(screen.getByRole("img", { name: "Empty: no data yet" })).toBeTruthy();
  expect(container.innerHTML).not.toContain("NaN");
});
