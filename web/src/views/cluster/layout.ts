/** Where every GPU of a type is drawn. Plain arithmetic both ways, so that ten thousand cells need
 * neither ten thousand elements nor ten thousand listeners. */
import type { Node } from "../../api/types";
import { holders } from "./model";

/** Side of a cell in pixels, the largest for which the GPUs are few enough. */
const SIZES: readonly (readonly [gpus: number, side: number])[] = [
  [96, 30],
  [320, 20],
  [1200, 13],
  [Infinity, 8],
];
/** From this side on there is room for a job's number in a cell, and a node's above it. */
export const READABLE = 20;

export interface Layout {
  side: number;
  gap: number;
  /** Cells of a node beside each other, and rows of them. */
  columns: number;
  rows: number;
  /** From a node to the next one. */
  stepX: number;
  stepY: number;
  perRow: number;
  head: number;
  width: number;
  height: number;
  nodes: readonly Node[];
}

export function layoutOf(nodes: readonly Node[], width: number): Layout {
  const gpus = nodes.reduce((sum, node) => sum + node.gpus, 0);
  const most = nodes.reduce((max, node) => Math.max(max, node.gpus), 1);
  const side = SIZES.find(([limit]) => gpus <= limit)?.[1] ?? 8;
  const columns = most <= 4 ? most : Math.min(Math.ceil(most / 2), 8);
  const rows = Math.ceil(most / columns);
  const gap = side >= READABLE ? 3 : 1;
  const head = side >= READABLE ? 18 : 0;
  const apart = side >= READABLE ? 16 : Math.max(4, Math.round(side / 2));
  const stepX = columns * (side + gap) + apart;
  const stepY = rows * (side + gap) + head + apart;
  const perRow = Math.max(1, Math.floor((width + apart) / stepX));
  const height = Math.ceil(nodes.length / perRow) * stepY - apart + 2;
  return { side, gap, columns, rows, stepX, stepY, perRow, head, width, height, nodes };
}

/** Upper left corner of a node. */
export function corner(layout: Layout, index: number): [x: number, y: number] {
  const { perRow, stepX, stepY } = layout;
  return [(index % perRow) * stepX + 1, Math.floor(index / perRow) * stepY + 1];
}

export function cellAt(layout: Layout, index: number, gpu: number): [x: number, y: number] {
  const [x, y] = corner(layout, index);
  const pitch = layout.side + layout.gap;
  const row = Math.floor(gpu / layout.columns);
  return [x + (gpu % layout.columns) * pitch, y + layout.head + row * pitch];
}

export interface Spot {
  /** Of the node in the list. */
  index: number;
  gpu: number;
}

/** What is drawn at a point; null between the nodes. */
export function spotAt(layout: Layout, x: number, y: number): Spot | null {
  const { stepX, stepY, perRow, columns, rows, side, gap, head, nodes } = layout;
  const [column, row] = [Math.floor(x / stepX), Math.floor(y / stepY)];
  const index = row * perRow + column;
  const node = nodes[index];
  if (x < 0 || y < 0 || column >= perRow || !node) return null;
  const across = Math.floor((x - column * stepX) / (side + gap));
  const down = Math.max(0, Math.floor((y - row * stepY - head) / (side + gap)));
  if (across >= columns || down >= rows) return null;
  return { index, gpu: Math.min(down * columns + across, node.gpus - 1) };
}

/** Where an arrow key leads; undefined: it is not ours. */
export function moved(layout: Layout, spot: Spot | null, key: string): Spot | null | undefined {
  const { nodes, perRow } = layout;
  const to = (index: number, gpu: number): Spot | null => {
    const node = nodes[index];
    return node ? { index, gpu: Math.max(0, Math.min(gpu, node.gpus - 1)) } : spot;
  };
  const here = spot ?? { index: 0, gpu: -1 };
  const size = nodes[here.index]?.gpus ?? 0;
  switch (key) {
    case "Escape":
      return null;
    case "Home":
      return to(0, 0);
    case "End":
      return to(nodes.length - 1, Infinity);
    case "ArrowRight":
      return here.gpu + 1 < size ? to(here.index, here.gpu + 1) : to(here.index + 1, 0);
    case "ArrowLeft":
      return here.gpu > 0 ? to(here.index, here.gpu - 1) : to(here.index - 1, Infinity);
    case "ArrowDown":
      return to(spot ? here.index + perRow : 0, Math.max(0, here.gpu));
    case "ArrowUp":
      return to(here.index - perRow, here.gpu);
    default:
      return undefined;
  }
}

/** All that is drawn, as few outlines: one per job, and one each for what no job holds. */
export interface Drawing {
  jobs: Map<string, string>;
  idle: string;
  booting: string;
  leaving: string;
  /** Cells that have a job and whose node is not ready: drawn over the job's colour. */
  heldBooting: string;
}

export function drawingOf(layout: Layout): Drawing {
  const drawing: Drawing = { jobs: new Map(), idle: "", booting: "", leaving: "", heldBooting: "" };
  layout.nodes.forEach((node, index) => {
    holders(node).forEach((job, gpu) => {
      const [x, y] = cellAt(layout, index, gpu);
      draw(drawing, node.state, job, square(x, y, layout.side));
    });
  });
  return drawing;
}

function draw(drawing: Drawing, state: Node["state"], job: string | null, cell: string): void {
  if (job !== null) {
    drawing.jobs.set(job, (drawing.jobs.get(job) ?? "") + cell);
    if (state === "requested") drawing.heldBooting += cell;
  } else if (state === "requested") drawing.booting += cell;
  else if (state === "releasing") drawing.leaving += cell;
  else drawing.idle += cell;
}

function square(x: number, y: number, side: number): string {
  return `M${x} ${y}h${side}v${side}h${-side}z`;
}
