import { BELOW, BESIDE, EDGE, type Fitted } from "./margins";
import type { Axis } from "./axis";

interface AxesProps extends Fitted {
  x: Axis;
  y: Axis;
  width: number;
  height: number;
}

/** Ticks with their words, the lines behind them, and what each axis is of. */
export function Axes({ x, y, sx, sy, margin, width, height }: AxesProps) {
  const bottom = height - margin.bottom;
  const right = width - margin.right;
  return (
    <g className="axes">
      {sy.ticks.map(({ value, text }) => (
        <g key={value} transform={`translate(0 ${sy(value)})`}>
          <line className="grid" x1={margin.left} x2={right} />
          <text x={margin.left - BESIDE} dy="0.32em" textAnchor="end">
            {text}
          </text>
        </g>
      ))}
      {sx.ticks.map(({ value, text }) => (
        <text key={value} x={sx(value)} y={bottom + BELOW} textAnchor="middle">
          {text}
        </text>
      ))}
      <line className="base" x1={margin.left} x2={right} y1={bottom} y2={bottom} />
      <text className="axis-label" x={right} y={height - 4} textAnchor="end">
        {x.label}
      </text>
      <text className="axis-label" x={EDGE} y={11} textAnchor="start">
        {y.label}
      </text>
    </g>
  );
}
