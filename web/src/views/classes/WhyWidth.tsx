import type { EpochChoice, Why } from "../../api/types";
import type { Level, Mark, Series } from "../../charts/data";
import { LineChart } from "../../charts/LineChart";
import { duration, plural } from "../../format";
import { Empty, Shown } from "../../parts/basics";
import { useAnswer } from "../../state/hooks";
import { sensible, stepsOf, stretchesOf } from "./why";

const MOST_OPEN = 2;

interface OfClass {
  name: string;
  /** Of the plan in force; null: there is none. */
  number: number | null;
  isPlanned: boolean;
}

/** Time against money: the service's words, and for each stretch of epochs the figures. */
export function WhyWidth({ name, number, isPlanned }: OfClass) {
  const path = isPlanned ? `/classes/${encodeURIComponent(name)}/why` : null;
  const answer = useAnswer<Why>(path, number);
  if (number === null) return <Empty title="There is no plan yet." />;
  if (!isPlanned) return <Empty title="The plan in force expects no jobs of this class." />;
  return (
    <Shown answer={answer} what="the reasons">
      {(why) => <Reasons why={why} />}
    </Shown>
  );
}

function Reasons({ why }: { why: Why }) {
  const rate = why.seconds_per_usd;
  const stretches = stretchesOf(why);
  return (
    <div className="stack">
      <p className="faint">
        {rate > 0
          ? `More GPUs save time and cost money. One more dollar saves ${duration(rate)} elsewhere, so a job of this class takes more GPUs as long as a dollar saves at least that.`
          : "The budget is no limit: every job gets the number of GPUs at which it is fastest, of those that its class may have by now."}
      </p>
      {stretches.map((stretch, index) => (
        <details key={stretch.key} open={index < MOST_OPEN} className="reason">
          <summary>{stretch.words}</summary>
          <Stretch title={stretch.title} epoch={stretch.epoch} rate={rate} />
        </details>
      ))}
    </div>
  );
}

interface ChartOf {
  title: string;
  epoch: EpochChoice;
}

function Stretch({ title, epoch, rate }: ChartOf & { rate: number }) {
  if (epoch.choices.length < 2) return null;
  return (
    <div className="two">
      <Marginal title={title} epoch={epoch} rate={rate} />
      <TimeAndCost title={title} epoch={epoch} />
    </div>
  );
}

function Marginal({ title, epoch, rate }: ChartOf & { rate: number }) {
  const steps = stepsOf(epoch.choices);
  if (steps.length === 0) {
    return null;
  }
  const planned = steps.find((step) => step.to === epoch.width);
  const points = steps.map((step) => [step.to, step.secondsPerUsd] as const);
  const levels: Level[] = rate > 0 ? [{ y: rate, text: "elsewhere", color: "var(--bad)" }] : [];
  const marks: Mark[] = planned
    ? [{ x: planned.to, y: planned.secondsPerUsd, text: plannedText(epoch), color: "var(--c2)" }]
    : [];
  const series: Series[] = [
    {
      name: "a dollar saves",
      color: "var(--c1)",
      points,
      dots: steps.map(({ from, to }) => ({ radius: 3.5, text: `from ${from} to ${to} GPUs` })),
    },
  ];
  return (
    <LineChart
      title={`${title}: what a dollar saves`}
      note="Going up to each number of GPUs from the one before. Below the line, the money saves more elsewhere."
      x={{ label: "GPUs", whole: true }}
      y={{ label: "time saved per dollar", unit: "seconds", log: true }}
      series={series}
      levels={levels}
      marks={marks}
    />
  );
}

function TimeAndCost({ title, epoch }: ChartOf) {
  const good = sensible(epoch.choices);
  const others = epoch.choices.filter((one) => !good.includes(one));
  const planned = epoch.choices.find((one) => one.width === epoch.width);
  const series: Series[] = [
    lineOf("worth considering", "var(--c1)", "line", good),
    lineOf("never: others give more for the money", "var(--faint)", "dots", others),
  ];
  const marks: Mark[] = planned
    ? [{ x: planned.cost_usd, y: planned.time_s, text: plannedText(epoch), color: "var(--c2)" }]
    : [];
  return (
    <LineChart
      title={`${title}: time and cost`}
      note="A dot for each number of GPUs, the rescaling before it included."
      x={{ label: "cost of these epochs", unit: "usd" }}
      y={{ label: "time they take", unit: "seconds" }}
      series={series.filter((one) => one.points.length > 0)}
      marks={marks}
    />
  );
}

function lineOf(
  name: string,
  color: string,
  kind: "line" | "dots",
  choices: EpochChoice["choices"],
): Series {
  return {
    name,
    color,
    kind,
    points: choices.map((one) => [one.cost_usd, one.time_s] as const),
    dots: choices.map((one) => ({ radius: 3.5, text: plural(one.width, "GPU") })),
  };
}

function plannedText({ width }: EpochChoice): string {
  return `planned: ${width}`;
}
