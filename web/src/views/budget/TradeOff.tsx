import { memo, useCallback, useMemo, useState } from "react";

import type { Frontier, Preview } from "../../api/types";
import type { Series } from "../../charts/data";
import { LineChart } from "../../charts/LineChart";
import { settable, usdPerHour } from "../../format";
import { Card, Loading } from "../../parts/basics";
import { Apply } from "./Apply";
import { ClassTable } from "./ClassTable";
import { Controls } from "./Controls";
import { usePreview, type Previewing } from "./hooks";
import { marksOf } from "./marks";
import { billWords } from "./money";
import { Outcome } from "./Outcome";
import { amount, scaleFor, type BudgetScale } from "./scale";

interface TradeOffProps {
  frontier: Frontier;
  plan: number;
  /** Whether the service answers. */
  connected: boolean;
  /** As it is set; by a calendar, the average of a week. */
  budget: number;
  /** The calendar's period that holds, null without one, and the budget of this hour. */
  period: string | null;
  now: number;
  cap: number | null;
  /** Told the budget, and the plan that was in force when it was confirmed. */
  onApplied: (budget: number, before: number) => void;
}

/** The frontier, a budget on it that somebody tries, and what would come of that. */
export const TradeOff = memo(function TradeOff(props: TradeOffProps) {
  const { frontier, plan, connected, budget } = props;
  const [wish, setWish] = useState<number | null>(null);
  const [typed, setTyped] = useState<string | null>(null);
  const pick = useCallback((to: number | null) => {
    setTyped(null);
    setWish(to);
  }, []);
  const onTyped = (text: string | null) => {
    setTyped(text);
    const found = text === null ? null : amount(text);
    if (found !== null) setWish(settable(found));
  };
  const wrong = typed !== null && amount(typed) === null;
  const tried = wish ?? budget;
  const preview = usePreview(tried, plan, connected);
  const scale = scaleFor(frontier.cheapest_per_hour, frontier.fastest_per_hour, budget);
  return (
    <Card title="What would more money buy?">
      <div className="trade">
        <FrontierChart
          frontier={frontier}
          scale={scale}
          tried={tried}
          preview={preview.data}
          pick={pick}
        />
        <div className="trade-side">
          <Controls
            frontier={frontier}
            scale={scale}
            tried={tried}
            budget={budget}
            preview={preview}
            pick={pick}
            typed={typed}
            onTyped={onTyped}
          />
          <Tried
            {...props}
            tried={tried}
            wrong={wrong}
            preview={preview}
            reset={() => pick(null)}
          />
        </div>
      </div>
      {preview.data && (
        <ClassTable changes={preview.data.classes} tried={tried} same={tried === budget} />
      )}
    </Card>
  );
});

interface TriedProps extends TradeOffProps {
  tried: number;
  /** Whether what is typed is no budget. */
  wrong: boolean;
  preview: Previewing;
  reset: () => void;
}

/** What would come of a budget, and the button that makes it so. */
function Tried(props: TriedProps) {
  const { frontier, plan, budget, period, now, cap } = props;
  const { onApplied, tried, wrong, preview, reset } = props;
  const { data, error, settled } = preview;
  const billed = data ? billWords(data.gain, data.planned_per_hour, tried, cap) : "";
  const applied = (to: number) => {
    reset();
    onApplied(to, plan);
  };
  return (
    <>
      {error && (
        <p className="field-problem" role="alert">
          {error.message}
        </p>
      )}
      {data && <Outcome preview={data} frontier={frontier} tried={tried} cap={cap} />}
      {!data && !error && <Loading what="the plan for this budget" />}
      <Apply
        tried={tried}
        budget={budget}
        period={period}
        now={now}
        billed={billed}
        cap={cap}
        preview={settled && !wrong ? data : null}
        onApplied={applied}
        reset={reset}
      />
      {period !== null && (
        <p className="faint small">
          Budgets here are averages of a week, as if all hours had the same; the plan in force is
          that of {period}, for {usdPerHour(now)}.
        </p>
      )}
      {billed && <p className="faint small">{billed}</p>}
    </>
  );
}

interface FrontierChartProps {
  frontier: Frontier;
  scale: BudgetScale;
  tried: number;
  preview: Preview | null;
  pick: (budget: number) => void;
}

function FrontierChart({ frontier, scale, tried, preview, pick }: FrontierChartProps) {
  const { low, high } = scale;
  const series = useMemo((): Series[] => {
    const points = frontier.points.map((p) => [p.budget_per_hour, p.average_jct_s] as const);
    const fastest = points.at(-1);
    const beyond = fastest ? [[high, fastest[1]] as const] : [];
    const name = "best average JCT";
    return [{ name, color: "var(--c1)", points: [...points, ...beyond] }];
  }, [frontier, high]);
  const slowest = frontier.points[0]?.average_jct_s ?? frontier.fastest_jct_s * 2;
  return (
    <LineChart
      title="Average JCT by budget"
      note="JCT: the time from a job's submission to its end. Click to try a budget."
      x={{ label: "budget in USD per hour", unit: "usd", log: true, domain: [low, high] }}
      y={{
        label: "average JCT",
        unit: "seconds",
        log: true,
        domain: [frontier.fastest_jct_s / 1.15, slowest * 1.25],
      }}
      series={series}
      marks={preview ? marksOf(preview, tried, scale) : []}
      height={390}
      onPick={(x) => pick(settable(x))}
    />
  );
}
