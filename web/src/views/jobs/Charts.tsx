import { useState } from "react";

import type { JobHistory } from "../../api/types";
import type { Axis } from "../../charts/axis";
import { LineChart } from "../../charts/LineChart";
import { Card } from "../../parts/basics";
import {
  costPoints,
  hasSteps,
  rateSteps,
  reported,
  rescaleMoments,
  widthSeries,
  type Over,
} from "./timeline";

interface ChartsProps {
  history: JobHistory;
  /** From its submission until its end, or now. */
  since: number;
  until: number;
}

/** GPUs and money over the job's life. */
export function LifeCharts({ history, since, until }: ChartsProps) {
  const { runs } = history;
  const x: Axis = { label: "time", unit: "time", domain: [since, Math.max(until, since + 1)] };
  const moments = rescaleMoments(runs);
  return (
    <div className="two">
      <Card>
        <LineChart
          title="GPUs over time"
          note="Dotted lines: it got other GPUs. At zero it waits, or moves."
          x={x}
          y={{ label: "GPUs", whole: true }}
          series={widthSeries(runs, since, until)}
          moments={moments}
        />
      </Card>
      <Card>
        <LineChart
          title="Cost over time"
          note="What it has cost by when: GPUs that it held, at their price."
          x={x}
          y={{ label: "USD", unit: "usd" }}
          series={[
            {
              name: "cost",
              color: "var(--c2)",
              kind: "band",
              points: costPoints(runs, since, until),
            },
          ]}
          moments={moments}
        />
      </Card>
    </div>
  );
}

/** What the job said of itself, as far as it did. */
export function TrainingCharts({ history, since, until }: ChartsProps) {
  const { points, runs } = history;
  const stepped = hasSteps(points);
  const [chosen, setOver] = useState<Over>("time");
  const over = stepped ? chosen : "time";
  const x: Axis =
    over === "time"
      ? { label: "time", unit: "time", domain: [since, Math.max(until, since + 1)] }
      : { label: "step" };
  const moments = over === "time" ? rescaleMoments(runs) : [];
  const rate = rateSteps(points, over);
  const loss = reported(points, (point) => point.loss, over);
  const batch = reported(points, (point) => point.batch_size, over);
  const controls = stepped && <OverToggle over={over} onOver={setOver} />;
  if (rate.length + loss.length + batch.length === 0) return null;
  return (
    <Card title="Training" tools={controls}>
      <div className="two">
        {rate.length > 0 && (
          <LineChart
            title="Throughput"
            x={x}
            y={{ label: "units per second" }}
            series={[{ name: "throughput", color: "var(--c1)", kind: "step", points: rate }]}
            moments={moments}
            height={200}
          />
        )}
        {loss.length > 0 && (
          <LineChart
            title="Loss"
            x={x}
            y={{ label: "loss", zero: false }}
            series={[{ name: "loss", color: "var(--c3)", kind: kindOf(loss), points: loss }]}
            moments={moments}
            height={200}
          />
        )}
        {batch.length > 0 && (
          <LineChart
            title="Batch size"
            x={x}
            y={{ label: "samples" }}
            series={[
              { name: "batch size", color: "var(--c4)", kind: stepsOf(batch), points: batch },
            ]}
            moments={moments}
            height={200}
          />
        )}
      </div>
    </Card>
  );
}

/** One point makes no line. */
function kindOf(points: readonly unknown[]): "line" | "dots" {
  return points.length > 1 ? "line" : "dots";
}

/** A batch size holds until it is changed. */
function stepsOf(points: readonly unknown[]): "step" | "dots" {
  return points.length > 1 ? "step" : "dots";
}

function OverToggle({ over, onOver }: { over: Over; onOver: (over: Over) => void }) {
  return (
    <div className="chips" role="group" aria-label="Draw over">
      {(["time", "step"] as const).map((each) => (
        <button
          key={each}
          type="button"
          className="chip"
          aria-pressed={over === each}
          onClick={() => onOver(each)}
        >
          over {each === "time" ? "time" : "steps"}
        </button>
      ))}
    </div>
  );
}
