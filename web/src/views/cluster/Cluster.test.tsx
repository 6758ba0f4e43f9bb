import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { Node } from "../../api/types";
import { live } from "../../state/hooks";
import { NOTHING } from "../../state/live";
import { client } from "../../state/session";
import { Cluster } from "../Cluster";
import { held, node } from "./sample";

function picture(nodes: readonly Node[], counts: Record<string, number> = {}) {
  const byId = new Map(nodes.map((each) => [each.id, each]));
  live.picture = { ...NOTHING, connection: "live", heardAt: 1, now: 1000, nodes: byId, counts };
}

beforeEach(() => {
  window.location.hash = "#/cluster";
  vi.spyOn(client, "get").mockRejectedValue(new Error("no history here"));
  vi.stubGlobal("ResizeObserver", WideObserver);
});
afterEach(() => {
  cleanup();
  live.picture = NOTHING;
  vi.unstubAllGlobals();
});

/** Everything is 900 pixels wide. */
class WideObserver {
  constructor(private readonly tell: (entries: { contentRect: { width: number } }[]) => void) {}
  observe() {
    this.tell([{ contentRect: { width: 900 } }]);
  }
  disconnect() {
    /* nothing to give back */
  }
}

test("nothing rented is fine while no job needs it, and says what waits if some do", () => {
  picture([]);
  const { unmount } = render(<Cluster />);
  expect(screen.getByText("Nothing is rented now")).toBeTruthy();
  expect(screen.getByText("boa submit job.yaml")).toBeTruthy();
  unmount();
  picture([], { waiting: 3 });
  render(<Cluster />);
  expect(screen.getByText(/3 jobs wait/)).toBeTruthy();
});

test("the arrow keys read a GPU out, and Enter opens its job", async () => {
  picture([node(1, { held: held(1, ["41", 2]) })]);
  render(<Cluster />);
  screen.getByRole("img", { name: /T4: 1 node, 2 GPUs in use, 2 idle/ }).focus();
  await userEvent.keyboard("{ArrowRight}");
  expect(screen.getByText(/GPU 1 of 4/).textContent).toContain("job 41");
  await userEvent.keyboard("{End}");
  expect(screen.getByText(/GPU 4 of 4/).textContent).toContain("idle");
  await userEvent.keyboard("{Enter}");
  expect(window.location.hash).toBe("#/cluster");
  await userEvent.keyboard("{Home}{Enter}");
  expect(window.location.hash).toBe("#/jobs/41");
});

test("a click on a cell opens its job", () => {
  picture([node(1, { held: held(1, ["41", 1], ["42", 3]) })]);
  render(<Cluster />);
  const cells = screen.getByRole("img", { name: /T4: 1 node/ });
  fireEvent.click(cells, { clientX: 50, clientY: 30 });
  expect(window.location.hash).toBe("#/jobs/42");
});

test("a link to a node brings it into sight and marks it", () => {
  const scrolled = vi.fn();
  Element.prototype.scrollIntoView = scrolled;
  picture([node(1), node(17)]);
  live.picture = { ...live.picture, complete: true };
  const { container } = render(<Cluster rest={["17"]} />);
  expect(screen.getByText(/marked below: 4×T4, ready/)).toBeTruthy();
  expect(container.querySelectorAll("[data-node='17']")).toHaveLength(1);
  expect(scrolled).toHaveBeenCalledOnce();
});

test("a link to a node that has gone says so, and where to read of it", () => {
  picture([node(1)]);
  live.picture = { ...live.picture, complete: true };
  render(<Cluster rest={["17"]} />);
  expect(screen.getByText(/Node 17 is not there any more/)).toBeTruthy();
  expect(screen.getByRole("link", { name: "What happened to it" }).getAttribute("href")).toBe(
    "#/events?search=node+17",
  );
});

test("ten thousand GPUs are drawn with an element per job, not per GPU", () => {
  picture(
    Array.from({ length: 2500 }, (_, i) =>
      node(i + 1, { held: held(i + 1, [String(Math.floor(i / 25)), 4]) }),
    ),
  );
  const { container } = render(<Cluster />);
  expect(container.querySelectorAll("[data-job]")).toHaveLength(100);
  expect(container.querySelectorAll("svg.cells *").length).toBeLessThan(200);
});

test("the history's trouble is told in its own words, beside the nodes", async () => {
  picture([node(1)]);
  render(<Cluster />);
  expect((await screen.findByRole("alert")).textContent).toContain("no history here");
  expect(screen.getByRole("table", { name: "Nodes" })).toBeTruthy();
});
