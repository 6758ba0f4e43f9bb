import {
  memo,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
  type KeyboardEvent,
  type MouseEvent,
} from "react";

import type { JobRow } from "../../api/types";
import { colorOfJob } from "../../charts/colors";
import { Frame } from "../../charts/Frame";
import { plural } from "../../format";
import { linkTo, useWidth } from "../../state/hooks";
import { cellAt, corner, drawingOf, layoutOf, moved, READABLE, spotAt } from "./layout";
import type { Drawing, Layout, Spot } from "./layout";
import { holders, nodeTable, stateWords, type TypeGroup } from "./model";
import { NodeWords } from "./NodeWords";

type Jobs = ReadonlyMap<string, JobRow>;

interface CellsProps {
  group: TypeGroup;
  jobs: Jobs;
  note: string;
  /** Number of a node to mark, if it is one of these. */
  asked?: number;
}

/** The GPUs of one type, a cell each, coloured by job. */
export function Cells({ group, jobs, note, asked }: CellsProps) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const layout = useMemo(() => layoutOf(group.list, Math.max(width, 120)), [group.list, width]);
  return (
    <Frame title={`${group.gpuType} nodes`} note={note} table={() => nodeTable(group.list)}>
      <div ref={ref} className="cells-body">
        {width > 0 && <Picture layout={layout} group={group} jobs={jobs} />}
        {width > 0 && <Marked layout={layout} asked={asked} />}
      </div>
    </Frame>
  );
}

interface PictureProps {
  layout: Layout;
  group: TypeGroup;
  jobs: Jobs;
}

function Picture({ layout, group, jobs }: PictureProps) {
  const [spot, setSpot] = useState<Spot | null>(null);
  const drawing = useMemo(() => drawingOf(layout), [layout]);
  const job = jobAt(layout, spot);
  const keys = (event: KeyboardEvent) => {
    if (event.key === "Enter") open(job);
    const next = moved(layout, spot, event.key);
    if (next === undefined) return;
    event.preventDefault();
    setSpot(next);
  };
  const point = (event: MouseEvent) => {
    const box = event.currentTarget.getBoundingClientRect();
    const next = spotAt(layout, event.clientX - box.left, event.clientY - box.top);
    setSpot((was) => kept(was, next));
    return next;
  };
  const node = spot && layout.nodes[spot.index];
  return (
    <div className="plot">
      <svg
        {...sizeOf(layout)}
        className={`cells ${job === null ? "" : "opens"}`}
        role="img"
        aria-label={spoken(group)}
        // So that arrows can read out what a mouse shows, and Enter opens a job.
        tabIndex={0}
        onPointerMove={point}
        onPointerLeave={() => setSpot(null)}
        // A finger points nowhere before it taps.
        onClick={(event) => open(jobAt(layout, point(event)))}
        onKeyDown={keys}
        onBlur={() => setSpot(null)}
      >
        <Drawn drawing={drawing} layout={layout} />
      </svg>
      {spot && <Pointed drawing={drawing} layout={layout} spot={spot} job={job} />}
      {spot && node && (
        <NodeWords node={node} gpu={spot.gpu} job={job} jobs={jobs} place={placeOf(layout, spot)} />
      )}
    </div>
  );
}

function open(job: string | null): void {
  if (job !== null) window.location.hash = linkTo("jobs", job);
}

/** The same object while it means the same: nothing is drawn anew then. */
function kept(was: Spot | null, next: Spot | null): Spot | null {
  return was?.index === next?.index && was?.gpu === next?.gpu ? was : next;
}

function jobAt(layout: Layout, spot: Spot | null): string | null {
  const node = spot && layout.nodes[spot.index];
  return node ? (holders(node)[spot.gpu] ?? null) : null;
}

function spoken({ gpuType, list, used, idle, booting }: TypeGroup): string {
  return `${gpuType}: ${plural(list.length, "node")}, ${used} GPUs in use, ${idle} idle, ${booting} booting. Arrow keys go from GPU to GPU, Enter opens the job.`;
}

function placeOf(layout: Layout, spot: Spot): React.CSSProperties {
  const [x, y] = corner(layout, spot.index);
  const top = y + layout.head + layout.rows * (layout.side + layout.gap) + 6;
  return x > layout.width / 2
    ? { top, right: Math.max(0, layout.width - x - layout.stepX) }
    : { top, left: x };
}

/** All cells. Not drawn anew while somebody only points at them. */
const Drawn = memo(function Drawn({ drawing, layout }: { drawing: Drawing; layout: Layout }) {
  const hatch = useId();
  const readable = layout.side >= READABLE;
  return (
    <>
      <defs>
        <pattern
          id={hatch}
          width="6"
          height="6"
          patternUnits="userSpaceOnUse"
          patternTransform="rotate(45)"
        >
          <line className="hatch" x1="0" x2="0" y1="0" y2="6" />
        </pattern>
      </defs>
      {readable && <NodeNames layout={layout} />}
      <path className="cell-idle" d={drawing.idle} />
      <path className="cell-booting" d={drawing.booting} fill={`url(#${hatch})`} />
      <path className="cell-leaving" d={drawing.leaving} />
      {[...drawing.jobs].map(([job, path]) => (
        <path key={job} data-job={job} d={path} fill={colorOfJob(job)} />
      ))}
      <path className="cell-booting" d={drawing.heldBooting} fill={`url(#${hatch})`} />
      {readable && <JobNumbers layout={layout} />}
    </>
  );
});

function sizeOf({ width, height }: Layout) {
  return { width, height, viewBox: `0 0 ${width} ${height}` };
}

function NodeNames({ layout }: { layout: Layout }) {
  return layout.nodes.map((node, index) => {
    const [x, y] = corner(layout, index);
    const state = node.state === "ready" ? "" : ` ${stateWords(node)}`;
    return (
      <text key={node.id} x={x} y={y + 12}>
        {layout.columns > 2 ? `node ${node.id}${state}` : node.id}
      </text>
    );
  });
}

function JobNumbers({ layout }: { layout: Layout }) {
  return layout.nodes.flatMap((node, index) =>
    holders(node).map((job, gpu) => {
      if (job === null || job.length * 7 > layout.side + 2) return null;
      const [x, y] = cellAt(layout, index, gpu);
      return (
        <text
          key={`${node.id} ${gpu}`}
          className="cell-number"
          x={x + layout.side / 2}
          y={y + layout.side / 2}
          dy="0.35em"
          textAnchor="middle"
        >
          {job}
        </text>
      );
    }),
  );
}

/** The node that a link led to, brought into sight once. */
function Marked({ layout, asked }: { layout: Layout; asked: number | undefined }) {
  const box = useRef<SVGRectElement>(null);
  const index = layout.nodes.findIndex((node) => node.id === asked);
  const here = index >= 0;
  useEffect(() => {
    if (here) box.current?.scrollIntoView({ block: "center" });
  }, [here, asked]);
  if (!here) return null;
  const [x, y] = corner(layout, index);
  const pitch = layout.side + layout.gap;
  const [width, height] = [layout.columns * pitch + 3, layout.rows * pitch + 3];
  return (
    <svg {...sizeOf(layout)} className="cells-pointed" aria-hidden="true">
      <rect
        ref={box}
        className="cell-cursor"
        data-node={asked}
        x={Math.max(1, x - 3)}
        y={Math.max(1, y + layout.head - 3)}
        width={width}
        height={height}
        rx="4"
      />
    </svg>
  );
}

/** The GPU that one points at, and all others of its job. */
function Pointed(props: { drawing: Drawing; layout: Layout; spot: Spot; job: string | null }) {
  const { drawing, layout, spot, job } = props;
  const [x, y] = cellAt(layout, spot.index, spot.gpu);
  const side = layout.side + 3;
  return (
    <svg {...sizeOf(layout)} className="cells-pointed" aria-hidden="true">
      {job !== null && <path className="cell-lit" d={drawing.jobs.get(job)} />}
      <rect className="cell-cursor" x={x - 1.5} y={y - 1.5} width={side} height={side} />
    </svg>
  );
}
