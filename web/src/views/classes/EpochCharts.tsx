import type { ClassDocument, PlanClass } from "../../api/types";
import { colorAt } from "../../charts/colors";
import { LineChart } from "../../charts/LineChart";
import { Card } from "../../parts/basics";
import { byEpoch, widthLines } from "./model";

const EPOCHS = { label: "epochs done", whole: true } as const;

export function PlannedWidths({ plan }: { plan: PlanClass }) {
  const lines = widthLines(plan);
  if (lines.length === 0) return null;
  return (
    <Card>
      <LineChart
        title="Planned GPUs by epoch"
        note={
          lines.length > 1
            ? "Some jobs get one row of numbers and some another, so that the budget is just used up."
            : "What a job gets from its first epoch to its last."
        }
        x={EPOCHS}
        y={{ label: "GPUs", whole: true }}
        series={lines.map(({ name, points }, index) => ({
          name,
          points,
          color: colorAt(index),
          kind: "step",
          dashed: index % 2 === 1,
        }))}
      />
    </Card>
  );
}

export function Work({ known }: { known: ClassDocument }) {
  return (
    <Card>
      <LineChart
        title="Work by epoch"
        note="In the units that its jobs report their progress in."
        x={EPOCHS}
        y={{ label: "units" }}
        series={[
          { name: "work", color: "var(--c1)", kind: "stepBand", points: byEpoch(known.work) },
        ]}
      />
    </Card>
  );
}

/** Only where jobs tell it. */
export function NoiseScale({ known }: { known: ClassDocument }) {
  if (known.noise_scale.every((value) => value === null)) return null;
  return (
    <Card>
      <LineChart
        title="Noise scale by epoch"
        note="Up to about this batch size, in samples, larger batches learn nearly as much per sample."
        x={EPOCHS}
        y={{ label: "samples" }}
        series={[
          {
            name: "noise scale",
            color: "var(--c6)",
            kind: "step",
            points: byEpoch(known.noise_scale),
          },
        ]}
      />
    </Card>
  );
}
