/** Speedup curves and what they were made from, as lines and dots. */
import type { ClassOnType, FailedWidth } from "../../api/types";
import type { Mark, Point, Series } from "../../charts/data";
import { plural, trimmed } from "../../format";
import { speedupAt } from "./model";

const ROOM = 1.15;
/** Above the highest point, so that perfect scaling is seen to leave the curve. */
const DOT = { least: 3, most: 9 };

/** Upper end of the axis. Perfect scaling may go beyond it: then it is cut off there. */
export function topOf({ curve, samples }: ClassOnType): number {
  const values = [...curve.speedup, ...samples.map((sample) => sample.speedup ?? 0)];
  return ROOM * Math.max(0, ...values) || 1;
}

/** The curve, dashed where no job was yet, and perfect scaling. */
export function curvesOf(type: ClassOnType): Series[] {
  const points = type.curve.widths.map((width, i): Point => [width, type.curve.speedup[i] ?? null]);
  const measured = points.filter(([width]) => width <= type.tried);
  const beyond = points.filter(([width]) => width >= type.tried);
  const series: Series[] = [
    {
      name: "perfect scaling",
      color: "var(--faint)",
      points: perfect(points, topOf(type)),
      dashed: true,
    },
  ];
  if (measured.length > 1) series.push({ name: "fit", color: "var(--c1)", points: measured });
  if (beyond.length > 1) {
    series.push({ name: "believed, not tried", color: "var(--c3)", points: beyond, dashed: true });
  }
  return series;
}

/** The first point times more of the same, up to the upper end. */
export function perfect(points: readonly Point[], top: number): Point[] {
  const [width, speedup] = points[0] ?? [0, 0];
  const widest = points.at(-1)?.[0] ?? 0;
  if (!width || !speedup) return [];
  const end = Math.min(widest, (top * width) / speedup);
  const widths = points.map(([at]) => at).filter((at) => at < end);
  return [...widths, end].map((at): Point => [at, (speedup * at) / width]);
}

/** Dots that are the larger the more reports they were made from. */
export function samplesOf(type: ClassOnType): Series[] {
  const most = Math.max(1, ...type.samples.map((sample) => sample.reports));
  return [false, true].flatMap((across): Series[] => {
    const mine = type.samples
      .filter((sample) => sample.across_nodes === across && sample.speedup !== null)
      .sort((a, b) => a.width - b.width);
    if (mine.length === 0) return [];
    return [
      {
        name: across ? "measured, over several nodes" : "measured, on one node",
        color: across ? "var(--c4)" : "var(--c6)",
        kind: "dots",
        points: mine.map((sample): Point => [sample.width, sample.speedup]),
        dots: mine.map((sample) => ({
          radius: radius(sample.reports / most),
          text: `${plural(sample.width, "GPU")}: ${plural(sample.reports, "report")} over ${trimmed(sample.seconds, 0)} s`,
        })),
      },
    ];
  });
}

/** By area, as eyes compare dots. */
function radius(part: number): number {
  return DOT.least + (DOT.most - DOT.least) * Math.sqrt(part);
}

const NEAR = 0.15;
/** Part of the axis within which words beside two marks would run into each other. */

/** The planned widths on the curve. Those near each other share one set of words. */
export function marksOf(type: ClassOnType, planned: readonly number[]): Mark[] {
  const near = NEAR * (type.curve.widths.at(-1) ?? 0);
  const groups: number[][] = [];
  for (const width of planned) {
    const last = groups.at(-1);
    if (last && width - (last.at(-1) ?? 0) < near) last.push(width);
    else groups.push([width]);
  }
  return groups.flatMap((group) =>
    group.flatMap((width, index): Mark[] => {
      const y = speedupAt(type, width);
      const text = index === group.length - 1 ? `planned: ${group.join(", ")}` : "";
      return y === null ? [] : [{ x: width, y, text, color: "var(--c2)" }];
    }),
  );
}

/** A width that failed, and what becomes of it; as `boa show` says it. */
export function failedWords(gpu: string, one: FailedWidth): string {
  const where = `${one.width}×${gpu}${one.across_nodes ? " across nodes" : ""}`;
  const times = one.times === 1 ? "once" : `${one.times} times`;
  const why = one.said ? `${one.reason}: ${one.said}` : one.reason;
  return `${where} failed ${times}: ${why}; not used${one.again_at === null ? "" : " for now"}`;
}
