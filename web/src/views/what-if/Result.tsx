import { useMemo, useState } from "react";

import type { ComparisonPoint } from "../../api/types";
import { LineChart } from "../../charts/LineChart";
import { duration, figure, trimmed, usdPerHour } from "../../format";
import { Card } from "../../parts/basics";
import { Wide } from "../../parts/Wide";
import {
  moneyWord,
  pointsOf,
  rivalOf,
  sentences,
  seriesOf,
  told,
  type Finished,
  type Measure,
} from "./results";

const MEASURES = [
  ["average_jct_s", "average"],
  ["p95_jct_s", "P95"],
] as const;

/** What policies made of the same money: one simulation, or several in one chart. */
export function Result({ finished }: { finished: readonly Finished[] }) {
  const [measure, setMeasure] = useState<Measure>("average_jct_s");
  const series = useMemo(() => seriesOf(finished, measure), [finished, measure]);
  const money = moneyWord(finished);
  const buttons = (
    <span className="choice" role="group" aria-label="Which JCT">
      {MEASURES.map(([key, name]) => (
        <button
          key={key}
          type="button"
          aria-pressed={key === measure}
          onClick={() => setMeasure(key)}
        >
          {name}
        </button>
      ))}
    </span>
  );
  return (
    <Card title={titleOf(finished)} tools={buttons}>
      {finished.map((simulation) => (
        <Sentences key={simulation.id} simulation={simulation} many={finished.length > 1} />
      ))}
      <LineChart
        title={measure === "average_jct_s" ? `Average JCT by ${money}` : `P95 of JCT by ${money}`}
        note="JCT: the time from a job's arrival to its end. Lower and further left is better."
        x={{ label: `average ${money} in USD per hour`, unit: "usd" }}
        y={{ label: "JCT", unit: "seconds" }}
        series={series}
        height={340}
      />
      {finished.map((simulation) => (
        <Points key={simulation.id} simulation={simulation} many={finished.length > 1} />
      ))}
    </Card>
  );
}

function titleOf(finished: readonly Finished[]): string {
  const [first] = finished;
  if (finished.length !== 1 || !first) return `${finished.length} simulations`;
  return `No. ${first.id}: ${first.trace} on ${first.gpu_types.join(", ")}`;
}

function Sentences({ simulation, many }: { simulation: Finished; many: boolean }) {
  const found = sentences(simulation.result);
  if (found.length === 0) return null;
  return (
    <div>
      {many && <h3>No. {simulation.id}</h3>}
      {found.map((sentence) => (
        <p key={sentence} className="sentence">
          {sentence}
        </p>
      ))}
    </div>
  );
}

function Points({ simulation, many }: { simulation: Finished; many: boolean }) {
  const { left_out: leftOut } = simulation.result;
  const money = moneyWord([simulation]) === "bill" ? "Bill" : "Spend";
  return (
    <section className="stack" aria-label={`Points of simulation ${simulation.id}`}>
      {many && (
        <h3>
          No. {simulation.id}: {simulation.trace} on {simulation.gpu_types.join(", ")}
        </h3>
      )}
      <Wide label={`Points of simulation ${simulation.id}, in a table`}>
        <table className="plain points">
          <thead>
            <tr>
              <th scope="col">Policy</th>
              <th scope="col">told</th>
              {[money, "Average JCT", "P95", "Rescalings per job", "JCT × BOA’s"].map((head) => (
                <th key={head} scope="col" className="numeric">
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {pointsOf(simulation.result).map((point) => (
              <PointRow
                key={`${point.policy} ${point.value}`}
                point={point}
                ratio={rivalOf(simulation.result, point)?.jct_ratio ?? null}
              />
            ))}
          </tbody>
        </table>
      </Wide>
      {leftOut.length > 0 && (
        <div>
          <h3>Left out</h3>
          <ul className="left-out">
            {leftOut.map((point) => (
              <li key={`${point.policy} ${point.value}`}>
                <b>
                  {point.policy}, {told(point)}
                </b>
                : {point.why}
              </li>
            ))}
          </ul>
        </div>
      )}
    </section>
  );
}

function PointRow({ point, ratio }: { point: ComparisonPoint; ratio: number | null }) {
  const unfinished = point.jobs - point.completed;
  return (
    <tr>
      <th scope="row">{point.policy}</th>
      <td>{told(point)}</td>
      <td className="numeric">{usdPerHour(point.spend_per_hour)}</td>
      <td className="numeric">
        {duration(point.average_jct_s)}
        {unfinished > 0 && <div className="small warn">{unfinished} never ended</div>}
      </td>
      <td className="numeric">{duration(point.p95_jct_s)}</td>
      <td className="numeric">{figure(point.rescalings_per_job)}</td>
      <td className="numeric">{ratio === null ? "–" : trimmed(ratio, 2)}</td>
    </tr>
  );
}
