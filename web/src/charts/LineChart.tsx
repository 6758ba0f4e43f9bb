import { area, curveLinear, curveStepAfter, line } from "d3-shape";
import { useState, type KeyboardEvent, type PointerEvent, type ReactNode } from "react";

import { useWidth } from "../state/hooks";
import { Axes } from "./Axes";
import type { Axis } from "./axis";
import {
  holding,
  nearest,
  tableOf,
  type Level,
  type Mark,
  type Moment,
  type Point,
  type Series,
} from "./data";
import { Frame } from "./Frame";
import { fitted, type Drawn, type Fitted } from "./margins";
import { textWidth } from "./measure";
import { shown } from "./scale";

export interface LineChartProps {
  title: string;
  note?: ReactNode;
  x: Axis;
  y: Axis;
  series: readonly Series[];
  marks?: readonly Mark[];
  levels?: readonly Level[];
  moments?: readonly Moment[];
  height?: number;
  controls?: ReactNode;
  /** Called with x where somebody clicks. */
  onPick?: (x: number) => void;
}

/** Lines, steps, bands and dots over one pair of axes; reads out with the mouse and the arrows. */
export function LineChart(props: LineChartProps) {
  const { title, note, x, y, series, marks = [], levels = [], height = 240, controls } = props;
  const [ref, measured] = useWidth<HTMLDivElement>();
  const width = Math.max(measured, 200);
  const scales = fitted(drawnOf(props, width, height), textWidth);
  return (
    <Frame
      title={title}
      note={note}
      controls={controls}
      table={() => tableOf(withMarks(series, marks), x, y)}
      legend={series.filter((one) => !one.quiet)}
    >
      <div ref={ref} className="chart-body" style={{ minHeight: height }}>
        {measured > 0 && (
          <Plot {...props} {...scales} width={width} height={height} levels={levels} />
        )}
      </div>
    </Frame>
  );
}

function withMarks(series: readonly Series[], marks: readonly Mark[]): Series[] {
  const named = marks.map(({ text, color, x, y }): Series => ({
    name: text,
    color,
    points: [[x, y]],
    kind: "dots",
  }));
  return [...series, ...named];
}

function drawnOf(props: LineChartProps, width: number, height: number): Drawn {
  const { x, y, series, marks = [], levels = [] } = props;
  const xs = [...series.flatMap((one) => one.points.map(([at]) => at)), ...marks.map((m) => m.x)];
  const ys = [
    ...series.flatMap((one) => one.points.map(([, value]) => value ?? NaN)),
    ...marks.map((mark) => mark.y),
    ...levels.map((level) => level.y),
  ];
  return { x, y, xs, ys, width, height };
}

interface PlotProps extends LineChartProps, Fitted {
  width: number;
  height: number;
}

function Plot(props: PlotProps) {
  const { title, series, sx, margin, width, height, onPick } = props;
  const [cursor, setCursor] = useState<number | null>(null);
  const point = (event: PointerEvent<SVGSVGElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    return sx.invert(((event.clientX - box.left) / box.width) * width);
  };
  const keys = (event: KeyboardEvent) => {
    const next = moved(series, cursor, event.key);
    if (next === undefined) return;
    event.preventDefault();
    setCursor(next);
  };
  return (
    <div className="plot">
      <svg
        viewBox={`0 0 ${width} ${height}`}
        width={width}
        height={height}
        role="img"
        aria-label={`${title}: ${summary(props)}`}
        // So that arrows can read out what a mouse shows.
        tabIndex={0}
        onPointerMove={(event) => setCursor(point(event))}
        onPointerLeave={() => setCursor(null)}
        onClick={(event) => onPick?.(point(event as PointerEvent<SVGSVGElement>))}
        onKeyDown={keys}
        onBlur={() => setCursor(null)}
      >
        <Axes {...props} />
        <Lines {...props} />
        <Extras {...props} />
        {cursor !== null && (
          <line
            data-only-screen
            className="cursor"
            x1={sx(cursor)}
            x2={sx(cursor)}
            y1={margin.top}
            y2={height - margin.bottom}
          />
        )}
      </svg>
      {cursor !== null && <Reading {...props} cursor={cursor} />}
    </div>
  );
}

/** Where an arrow key takes the cursor; undefined: it is not ours. */
function moved(
  series: readonly Series[],
  cursor: number | null,
  key: string,
): number | null | undefined {
  const xs = [...new Set(series.flatMap((one) => one.points.map(([at]) => at)))].sort(
    (a, b) => a - b,
  );
  if (key === "Escape") return null;
  if (key === "Home") return xs[0];
  if (key === "End") return xs.at(-1);
  if (key === "ArrowRight") return xs.find((at) => cursor === null || at > cursor) ?? cursor;
  if (key === "ArrowLeft") return xs.findLast((at) => cursor === null || at < cursor) ?? cursor;
  return undefined;
}

function summary({ series, x, y }: LineChartProps): string {
  const parts = series.map((one) => {
    const last = one.points.findLast(([, value]) => value !== null);
    return last ? `${one.name} ${shown(last[1] ?? 0, y.unit)} at ${shown(last[0], x.unit)}` : "";
  });
  return parts.filter(Boolean).join(", ") || "no data yet";
}

function Lines({ series, sx, sy, margin, height }: PlotProps) {
  const floor = height - margin.bottom;
  return series.map((one) => {
    const there = ([, value]: Point) => value !== null;
    const px = ([at]: Point) => sx(at);
    const py = ([, value]: Point) => sy(value ?? 0);
    const points = [...one.points];
    const kind = one.kind ?? "line";
    const dots = (kind === "dots" || one.dots) && (
      <Dots series={one} px={px} py={py} fill={one.color} />
    );
    if (kind === "dots") return <g key={one.name}>{dots}</g>;
    const curve = kind === "step" || kind === "stepBand" ? curveStepAfter : curveLinear;
    const banded = kind === "band" || kind === "stepBand";
    const band = area<Point>().defined(there).x(px).y1(py).y0(floor).curve(curve);
    const path = line<Point>().defined(there).x(px).y(py).curve(curve);
    return (
      <g key={one.name}>
        {banded && <path d={band(points) ?? ""} fill={one.color} fillOpacity="0.18" />}
        <path
          d={path(points) ?? ""}
          fill="none"
          stroke={one.color}
          strokeWidth="2"
          strokeDasharray={one.dashed ? "5 4" : undefined}
        />
        {dots}
      </g>
    );
  });
}

interface DotsProps {
  series: Series;
  px: (point: Point) => number;
  py: (point: Point) => number;
  fill: string;
}

function Dots({ series, px, py, fill }: DotsProps) {
  return series.points.map((point, index) => {
    if (point[1] === null) return null;
    const radius = series.dots?.[index]?.radius ?? 3.5;
    return <circle key={index} cx={px(point)} cy={py(point)} r={radius} fill={fill} />;
  });
}

/** What is drawn over the lines. */
function Extras(props: PlotProps) {
  return (
    <g>
      <Levels {...props} />
      <Moments {...props} />
      <Marks {...props} />
    </g>
  );
}

function Levels({ levels = [], sy, margin, width }: PlotProps) {
  return levels.map((level) => (
    <g key={level.text} transform={`translate(0 ${sy(level.y)})`}>
      <line
        x1={margin.left}
        x2={width - margin.right}
        stroke={level.color}
        strokeWidth="1.5"
        strokeDasharray="6 4"
      />
      <text
        className="chart-word"
        x={width - margin.right}
        dy="-5"
        textAnchor="end"
        fill={level.color}
      >
        {level.text}
      </text>
    </g>
  ));
}

function Moments({ moments = [], sx, margin, height }: PlotProps) {
  return moments.map((moment) => (
    <line
      key={`${moment.x} ${moment.text}`}
      x1={sx(moment.x)}
      x2={sx(moment.x)}
      y1={margin.top}
      y2={height - margin.bottom}
      stroke={moment.color}
      strokeDasharray="2 3"
    >
      <title>{moment.text}</title>
    </line>
  ));
}

function Marks({ marks = [], sx, sy, width }: PlotProps) {
  return marks.map((mark) => {
    const left = sx(mark.x) > width * 0.7;
    return (
      <g key={`${mark.x} ${mark.text}`} transform={`translate(${sx(mark.x)} ${sy(mark.y)})`}>
        <circle r="6" fill={mark.color} stroke="var(--card)" strokeWidth="2" />
        <text
          className="chart-word"
          x={left ? -10 : 10}
          dy="-8"
          textAnchor={left ? "end" : "start"}
          fill={mark.color}
        >
          {mark.text}
        </text>
      </g>
    );
  });
}

function Reading({
  series,
  moments = [],
  x,
  y,
  sx,
  width,
  cursor,
}: PlotProps & { cursor: number }) {
  const near = moments.filter((moment) => Math.abs(sx(moment.x) - sx(cursor)) < 6);
  const at = x.whole ? Math.round(cursor) : cursor;
  const rows = series.flatMap((one) => {
    const steps = one.kind === "step" || one.kind === "stepBand";
    const index = steps ? holding(one.points, cursor) : nearest(one.points, at);
    const found = one.points[index];
    const { name, color } = one;
    const more = one.dots?.[index]?.text;
    return found ? [{ name, color, value: found[1] ?? 0, more }] : [];
  });
  if (rows.length === 0) return null;
  const right = sx(cursor) > width / 2;
  const place = right ? { right: width - sx(cursor) + 10 } : { left: sx(cursor) + 10 };
  return (
    <div className="reading" style={place} role="status">
      <div className="reading-x">{shown(at, x.unit)}</div>
      {rows.map((row) => (
        <div key={row.name}>
          <span className="dot" style={{ background: row.color }} /> {row.name}:{" "}
          <b>{shown(row.value, y.unit)}</b>
          {row.more && ` (${row.more})`}
        </div>
      ))}
      {near.map((moment) => (
        <div key={moment.text}>{moment.text}</div>
      ))}
    </div>
  );
}
