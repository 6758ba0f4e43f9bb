// @vitest-environment node
import { expect, test } from "vitest";

import { cellAt, drawingOf, layoutOf, moved, spotAt } from "./layout";
import { held, node } from "./sample";

function nodes(count: number, gpus = 4) {
  return Array.from({ length: count }, (_, i) => node(i + 1, { gpus }));
}

test.each([1, 60, 300, 2500])("of %d nodes every cell is found where it is drawn", (count) => {
  const layout = layoutOf(nodes(count, 8), 900);
  for (let index = 0; index < count; index += Math.ceil(count / 50)) {
    for (let gpu = 0; gpu < 8; gpu++) {
      const [x, y] = cellAt(layout, index, gpu);
      const middle = layout.side / 2;
      expect(spotAt(layout, x + middle, y + middle)).toEqual({ index, gpu });
      expect(x + layout.side).toBeLessThanOrEqual(layout.width);
      expect(y + layout.side).toBeLessThanOrEqual(layout.height);
    }
  }
});

test("there is nothing between the nodes, nor beyond the last", () => {
  const layout = layoutOf(nodes(3), 900);
  const [x] = cellAt(layout, 1, 0);
  expect(spotAt(layout, x - 8, 30)).toBeNull();
  expect(spotAt(layout, 890, 30)).toBeNull();
  expect(spotAt(layout, -1, -1)).toBeNull();
});

test("ten thousand GPUs fit on a page that can be scrolled in two strokes", () => {
  expect(layoutOf(nodes(2500), 1250).height).toBeLessThan(1300);
});

test("a screen that is narrower than a node still shows one beside the other", () => {
  expect(layoutOf(nodes(3, 16), 100).perRow).toBe(1);
});

test("arrows go from GPU to GPU, over the border of a node, and stay inside", () => {
  const layout = layoutOf(nodes(3), 900);
  expect(moved(layout, null, "ArrowRight")).toEqual({ index: 0, gpu: 0 });
  expect(moved(layout, { index: 0, gpu: 3 }, "ArrowRight")).toEqual({ index: 1, gpu: 0 });
  expect(moved(layout, { index: 1, gpu: 0 }, "ArrowLeft")).toEqual({ index: 0, gpu: 3 });
  expect(moved(layout, { index: 2, gpu: 3 }, "ArrowRight")).toEqual({ index: 2, gpu: 3 });
  expect(moved(layout, null, "End")).toEqual({ index: 2, gpu: 3 });
  expect(moved(layout, { index: 2, gpu: 3 }, "Escape")).toBeNull();
  expect(moved(layout, null, "x")).toBeUndefined();
});

test("each job is one outline, however many nodes it is on", () => {
  const list = [
    node(1, { held: held(1, ["41", 4]) }),
    node(2, { held: held(2, ["41", 1], ["42", 2]) }),
    node(3, { state: "requested", held: held(3, ["42", 4]) }),
    node(4, { state: "releasing" }),
  ];
  const drawing = drawingOf(layoutOf(list, 900));
  const cells = (path?: string) => path?.match(/M/g)?.length ?? 0;
  expect([...drawing.jobs.keys()]).toEqual(["41", "42"]);
  expect([...drawing.jobs.values()].map(cells)).toEqual([5, 6]);
  expect(cells(drawing.idle)).toBe(1);
  expect(cells(drawing.heldBooting)).toBe(4);
  expect(cells(drawing.leaving)).toBe(4);
  expect(drawing.booting).toBe("");
});
