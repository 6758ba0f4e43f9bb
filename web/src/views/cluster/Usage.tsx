import { useState } from "react";

import type { History } from "../../api/types";
import { LineChart } from "../../charts/LineChart";
import { Card, Empty, Shown } from "../../parts/basics";
import { Ranges } from "../../parts/Ranges";
import { useHistory, type Range } from "../../state/ranges";
import { demandOf, jobsOf, shownTypes } from "./lines";

const OFFERED = ["hour", "day", "week", "month"] as const;

/** What was rented and used, against what the plan had for the jobs that were there. */
export function Usage() {
  const [range, setRange] = useState<Range>("day");
  const answer = useHistory(range);
  const buttons = <Ranges of={OFFERED} range={range} onRange={setRange} />;
  return (
    <Card title="Usage over time" tools={buttons}>
      <Shown answer={answer} what="the history">
        {(history) => <Charts history={history} />}
      </Shown>
    </Card>
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
