import { useState } from "react";

import type { History } from "../../api/types";
import { LineChart } from "../../charts/LineChart";
import { Card, Empty, Shown } from "../../parts/basics";
import { usePicture } from "../../state/hooks";
import { client } from "../../state/session";
import { cropped } from "../budget/history";
import { useMoving } from "../budget/hooks";
import { demandOf, jobsOf, shownTypes } from "./lines";

const RANGES = { hour: 3600, day: 86_400, week: 604_800, month: 2_592_000 } as const;
type Range = keyof typeof RANGES;

const EVERY_MS = 60_000;
const LEAST_MS = 5_000;
/** A server whose clock runs fast is asked more often, but not more often than this. */

/** What was rented and used, against what the plan had for the jobs that were there. */
export function Usage() {
  const [range, setRange] = useState<Range>("day");
  const { speed } = usePicture();
  const answer = useMoving(
    "usage",
    (now, signal) =>
      cropped((path) => client.get<History>(path, signal), Math.max(0, now - RANGES[range])),
    Math.max(LEAST_MS, EVERY_MS / speed),
    range,
  );
  return (
    <Card title="Usage over time" tools={<Ranges range={range} onRange={setRange} />}>
      <Shown answer={answer} what="the history">
        {(history) => <Charts history={history} />}
      </Shown>
    </Card>
  );
}

function Ranges({ range, onRange }: { range: Range; onRange: (range: Range) => void }) {
  return (
    <div className="choice" role="group" aria-label="How far back">
      {(Object.keys(RANGES) as Range[]).map((name) => (
        <button
          key={name}
          type="button"
          aria-pressed={name === range}
          onClick={() => onRange(name)}
        >
          {name[0]?.toUpperCase()}
          {name.slice(1)}
        </button>
      ))}
    </div>
  );
}

function Charts({ history }: { history: History }) {
  const types = shownTypes(history);
  const x = { label: "time", unit: "time", domain: [history.since, history.until] } as const;
  if (types.length === 0) {
    return <Empty title="Nothing was rented in this time, and no job wanted a GPU." />;
  }
  return (
    <>
      <p className="chart-note">
        Wanted is what the plan has for all jobs that were there. Where rented stays below it, jobs
        run on fewer GPUs than planned or wait; where it is above, GPUs are kept warm or boot.
      </p>
      <div className="two">
        {types.map((type) => (
          <LineChart
            key={type}
            title={`${type} GPUs: rented, used, wanted`}
            x={x}
            y={{ label: "GPUs" }}
            series={demandOf(history, type)}
          />
        ))}
        <LineChart
          title="Jobs: active and waiting"
          x={x}
          y={{ label: "jobs" }}
          series={jobsOf(history)}
        />
      </div>
    </>
  );
}
