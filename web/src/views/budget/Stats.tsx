import { useState } from "react";

import type { Budget, Cost, Frontier } from "../../api/types";
import { clock, duration, moment, plural, trimmed, usd, usdPerHour } from "../../format";
import { Stat } from "../../parts/basics";
import { usePicture, type Answer } from "../../state/hooks";
import { useCost } from "../../state/ranges";
import { distinct, isShort } from "./averages";
import {
  averageBill,
  bandWords,
  billVerdict,
  budgetWords,
  forecastOf,
  HOUR_S,
  hoursOf,
  moreWords,
  pacingWords,
  periodOf,
  usualBudget,
  verdict,
} from "./money";

/** The answer in one line: the average bill against the budget; the figures behind it follow. */
export function Headline({ budget, frontier }: { budget: Budget; frontier: Frontier | null }) {
  const { budget_per_hour: now } = budget;
  const cost = useCost("calendar month", now).data;
  const week = usualBudget(budget);
  if (!cost) return <p className="headline plain">…</p>;
  const { tone, words } = billVerdict(cost);
  return (
    <p className={`headline ${tone}`}>
      <strong>{capital(words)}.</strong> <Announced words={words} tone={tone} />
      <span>
        {billSoFar(cost)}; the budget is {budgetWords(week, periodOf(budget), now)}.{" "}
        {frontier && moreWords(frontier, week, budget.max_spend_per_hour)}
      </span>
    </p>
  );
}

/** "The average bill is $27.62/h since Nov 19, 14:00:00" */
function billSoFar(cost: Cost): string {
  const { perHour, hours, since } = averageBill(cost);
  if (!(hours > 0)) return "Nothing is on the bill yet";
  return `The average bill is ${usdPerHour(perHour)} since ${moment(since)}`;
}

/** Said aloud when it is another verdict, not whenever a figure moves: that would be every second. */
function Announced({ words, tone }: { words: string; tone: string }) {
  const kind = /over|under|on budget/.exec(words)?.[0] ?? "";
  const [said, setSaid] = useState({ words, key: `${tone} ${kind}` });
  if (said.key !== `${tone} ${kind}`) setSaid({ words, key: `${tone} ${kind}` });
  return (
    <span className="unseen" role="status">
      {tone !== "plain" && said.words}
    </span>
  );
}

function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function Stats({ budget }: { budget: Budget }) {
  const version = budget.budget_per_hour;
  const month = useCost("calendar month", version);
  return (
    <>
      <div className="stats">
        <BillStat cost={month} />
        <SpendNow budget={budget} />
        <ForecastStat cost={month} />
        <CapStat budget={budget} />
        <JobsStat />
      </div>
      <More budget={budget} month={month} />
    </>
  );
}

/** The same average as in the headline and in `boa cost`. */
function BillStat({ cost }: { cost: Answer<Cost> }) {
  if (!cost.data) return <Unknown label="Average bill" cost={cost} />;
  const { perHour, hours, since } = averageBill(cost.data);
  const { tone, words } = billVerdict(cost.data);
  return (
    <Stat
      label="Average bill"
      value={hours > 0 ? usdPerHour(perHour) : "–"}
      tone={tone}
      note={
        <>
          {tone !== "plain" && words}
          {hours > 0 && <div>since {moment(since)}</div>}
          <Old cost={cost} />
        </>
      }
    />
  );
}

/** Figures that one seldom needs: what plans are made with, and averages of other times. */
function More({ budget, month }: { budget: Budget; month: Answer<Cost> }) {
  const { budget_per_hour: allowed, effective_budget_per_hour: effective } = budget;
  const averages = distinct([
    { label: "Average of 24 hours", cost: useCost("day", allowed) },
    { label: "Average of 7 days", cost: useCost("week", allowed) },
    { label: "Average this month", cost: month },
  ]);
  return (
    <details className="more-figures">
      <summary>More figures: what is planned with, other averages</summary>
      <div className="stats">
        <Stat
          label="Planned with"
          value={usdPerHour(effective)}
          note={pacingWords(allowed, effective, budget.max_spend_per_hour)}
        />
        {averages.map(({ label, cost }) => (
          <Average key={label} label={label} cost={cost} />
        ))}
      </div>
    </details>
  );
}

/** Where there is no figure yet. */
function Unknown({ label, cost }: { label: string; cost: Answer<Cost> }) {
  return <Stat label={label} value="–" note={cost.error ? cost.error.message : "asking…"} />;
}

/** Of a figure that could not be brought up to date. */
function Old({ cost }: { cost: Answer<Cost> }) {
  if (!cost.error) return null;
  return <div title={cost.error.message}>{`as of ${cost.at > 0 ? clock(cost.at) : "before"}`}</div>;
}

function SpendNow({ budget }: { budget: Budget }) {
  return (
    <Stat
      label="Spend now"
      value={usdPerHour(budget.spend_now_per_hour)}
      note={`budget ${usdPerHour(budget.budget_per_hour)} on average`}
    />
  );
}

function Average({ label, cost: answer }: { label: string; cost: Answer<Cost> }) {
  const cost = answer.data;
  if (!cost) return <Unknown label={label} cost={answer} />;
  const hours = hoursOf(cost);
  const { tone, words } = verdict(cost.average_spend_per_hour, cost.allowed_per_hour, hours);
  const short = hours > 0 && isShort(cost);
  return (
    <Stat
      label={label}
      value={usdPerHour(cost.average_spend_per_hour)}
      tone={tone}
      note={
        <>
          {words}
          {short && tone !== "plain" && <div>{duration(hours * HOUR_S)} so far</div>}
          <Old cost={answer} />
        </>
      }
    />
  );
}

function ForecastStat({ cost }: { cost: Answer<Cost> }) {
  if (!cost.data) return <Unknown label="Forecast of the month" cost={cost} />;
  const { amount, words } = forecastOf(cost.data);
  return (
    <Stat
      label="Forecast of the month"
      value={amount === null ? "–" : usd(amount)}
      tone={amount === null ? "plain" : billVerdict(cost.data).tone}
      note={
        <>
          {words}
          {amount !== null && bandWords(cost.data) && (
            <div title={cost.data.forecast_band_basis}>{bandWords(cost.data)}</div>
          )}
          <Old cost={cost} />
        </>
      }
    />
  );
}

function CapStat({ budget }: { budget: Budget }) {
  const cap = budget.max_spend_per_hour;
  const origin = budget.max_spend_set && (
    <div title={budget.max_spend_set.words}>set at run time: boa.yaml says otherwise</div>
  );
  const used = cap === null ? 0 : Math.round((budget.spend_now_per_hour / cap) * 100);
  return (
    <Stat
      label="Hard cap"
      value={cap === null ? "no cap" : usdPerHour(cap)}
      note={
        <>
          {cap === null ? "only the average counts" : `${used} % of it in use now`}
          {origin}
        </>
      }
    />
  );
}

function JobsStat() {
  const { counts } = usePicture();
  const of = (...states: string[]) => states.reduce((sum, state) => sum + (counts[state] ?? 0), 0);
  const coming = of("starting", "rescaling");
  const notes = [`${of("waiting", "submitted")} waiting`];
  if (coming > 0) notes.push(`${trimmed(coming, 0)} starting or rescaling`);
  return (
    <Stat
      label="Jobs"
      value={plural(of("running"), "running", "running")}
      note={notes.join(", ")}
    />
  );
}
