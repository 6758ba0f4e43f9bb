import type { ClassDocument, ClassOnType, PlanClass } from "../../api/types";
import type { Series } from "../../charts/data";
import { LineChart } from "../../charts/LineChart";
import { plural } from "../../format";
import { plannedOn } from "./model";
import { curvesOf, failedWords, marksOf, samplesOf, topOf } from "./speedups";

interface SpeedupProps {
  known: ClassDocument;
  type: ClassOnType;
  plan: PlanClass | null;
}

/** What more GPUs of a type bring: believed, measured, planned. */
export function Speedup({ known, type, plan }: SpeedupProps) {
  const series: Series[] = [...curvesOf(type), ...samplesOf(type)];
  const marks = marksOf(type, plannedOn(plan, type.name));
  return (
    <>
      <LineChart
        title={`Speedup on ${type.name}`}
        note={noteOf(known, type)}
        x={{ label: `${type.name} GPUs`, whole: true }}
        y={{ label: "speedup", domain: [0, topOf(type)] }}
        series={series}
        marks={marks}
      />
      {type.failed.length > 0 && (
        <ul aria-label={`Failed on ${type.name}`}>
          {type.failed.map((one) => (
            <li className="warn" key={`${one.width} ${one.across_nodes}`}>
              {failedWords(type.name, one)}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function noteOf(known: ClassDocument, type: ClassOnType): string {
  const [first] = known.gpu_types;
  const least = first?.curve.widths[0] ?? 1;
  const unit = first ? `1 is the speed of ${least}×${first.name}` : "";
  if (type.samples.length === 0 && type.failed.length > 0) return `Jobs failed on it. ${unit}.`;
  if (type.samples.length === 0) return `Not measured yet: no job ran on it. ${unit}.`;
  const reports = type.samples.reduce((sum, sample) => sum + sample.reports, 0);
  const widths = new Set(type.samples.map((sample) => sample.width)).size;
  return `Measured at ${plural(widths, "width")}, ${plural(reports, "report")}; larger dots have more. ${unit}.`;
}
