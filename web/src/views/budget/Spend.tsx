import { memo, useMemo, useState } from "react";

import type { Cost, History } from "../../api/types";
import type { Level, Point, Series } from "../../charts/data";
import { LineChart } from "../../charts/LineChart";
import { percent, usd, usdPerHour } from "../../format";
import { Card, Shown } from "../../parts/basics";
import { Ranges } from "../../parts/Ranges";
import { linkTo } from "../../state/hooks";
import { useCost, useHistory, type Range } from "../../state/ranges";
import { Unused } from "./Unused";

const OFFERED = ["day", "week", "month"] as const;

interface SpendProps {
  budget: number;
  cap: number | null;
}

/** What was spent, by when and by what for. */
export const Spend = memo(function Spend({ budget, cap }: SpendProps) {
  const [range, setRange] = useState<Range>("day");
  const history = useHistory(range, budget);
  const cost = useCost(range, budget);
  const buttons = (
    <>
      <a href={linkTo("month")}>This month, by user and tag</a>
      <Ranges of={OFFERED} range={range} onRange={setRange} />
    </>
  );
  return (
    <Card title="What was spent" tools={buttons}>
      <Shown answer={history} what="what was spent">
        {(found) => <SpendChart history={found} budget={budget} cap={cap} />}
      </Shown>
      {cost.data && <Parts cost={cost.data} />}
    </Card>
  );
});

function SpendChart({ history, budget, cap }: SpendProps & { history: History }) {
  const { series, levels } = useMemo(
    () => ({ series: seriesOf(history, budget), levels: levelsOf(budget, cap) }),
    [history, budget, cap],
  );
  return (
    <LineChart
      title="Spend per hour"
      note={`Averages of stretches of time, by the ledger. The line is the average from the left
        edge on.`}
      x={{ label: "", unit: "time" }}
      y={{ label: "USD per hour", unit: "usd" }}
      series={series}
      levels={levels}
      height={230}
    />
  );
}

function levelsOf(budget: number, cap: number | null): Level[] {
  const levels = [{ y: budget, text: `budget ${usdPerHour(budget)}`, color: "var(--c2)" }];
  if (cap !== null) levels.push({ y: cap, text: `cap ${usdPerHour(cap)}`, color: "var(--bad)" });
  return levels;
}

function seriesOf(history: History, budget: number): Series[] {
  const { since, step_s, until } = history;
  const begins = (values: readonly (number | null)[]): Point[] => {
    const points = values.map((value, n): Point => [since + n * step_s, value]);
    return [...points, [until, values.at(-1) ?? null]];
  };
  const ends = history.average_spend_per_hour.map((value, n): Point => [
    Math.min(since + (n + 1) * step_s, until),
    value,
  ]);
  const series: Series[] = [
    { name: "Spend", color: "var(--c1)", points: begins(history.spend_per_hour), kind: "stepBand" },
    { name: "Average so far", color: "var(--c3)", points: ends },
  ];
  const moved = history.budget_per_hour.some(
    (was) => was !== null && Math.abs(was / budget - 1) > 0.005,
  );
  if (moved) {
    const points = begins(history.budget_per_hour);
    series.push({ name: "Budget then", color: "var(--c2)", points, kind: "step", dashed: true });
  }
  return series;
}

/** What the money went to. */
function Parts({ cost }: { cost: Cost }) {
  const total = cost.total_usd;
  const parts = [
    ["jobs", cost.jobs_usd, "GPUs that jobs held", "var(--c1)"],
    ["idle", cost.idle_usd, "GPUs that were ready and that no job held", "var(--c2)"],
    ["provisioning", cost.provisioning_usd, "nodes that booted or went", "var(--c6)"],
  ] as const;
  return (
    <div className="parts">
      <div className="parts-bar" aria-hidden="true">
        {parts.map(([name, amount, , color]) => (
          <span key={name} style={{ width: share(amount, total), background: color }} />
        ))}
      </div>
      <ul className="legend">
        <li>
          <b>{usd(total)} in all</b>
        </li>
        {parts.map(([name, amount, about, color]) => (
          <li key={name} title={about}>
            <span className="dot" style={{ background: color }} />
            {name} {usd(amount)} ({total > 0 ? percent(amount / total) : "–"})
          </li>
        ))}
      </ul>
      <Unused cost={cost} />
    </div>
  );
}

function share(part: number, total: number): string {
  return total > 0 ? `${(part / total) * 100}%` : "0";
}
