import type { Budget, Cost, Frontier } from "../../api/types";
import { duration, moment, plural, trimmed, usd, usdPerHour } from "../../format";
import { Stat } from "../../parts/basics";
import { usePicture } from "../../state/hooks";
import { client } from "../../state/session";
import { useMoving } from "./hooks";
import { dollarWords, forecastOf, HOUR_S, hoursOf, monthOf, pacingWords, verdict } from "./money";

const EVERY_MS = 10_000;
const DAY_S = 86_400;

/** The answer in one line; the figures behind it follow. */
export function Headline({ budget, frontier }: { budget: Budget; frontier: Frontier | null }) {
  const hours = (budget.now - budget.since) / HOUR_S;
  const { budget_per_hour: allowed, average_spend_per_hour: average } = budget;
  const { tone, words } = verdict(average, allowed, hours);
  return (
    <p className={`headline ${tone}`} role="status">
      <strong>{capital(words)}.</strong>{" "}
      <span>
        {usdPerHour(average)} on average since {moment(budget.since)}; the budget is{" "}
        {usdPerHour(allowed)}. {frontier && dollarWords(frontier, allowed)}
      </span>
    </p>
  );
}

function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function Stats({ budget }: { budget: Budget }) {
  const version = budget.budget_per_hour;
  const day = useMoving("day", (now, signal) => costSince(now - DAY_S, signal), EVERY_MS, version);
  const week = useMoving(
    "week",
    (now, signal) => costSince(now - 7 * DAY_S, signal),
    EVERY_MS,
    version,
  );
  const month = useMoving(
    "month",
    (now, signal) => costSince(monthOf(now).begin, signal),
    EVERY_MS,
    version,
  );
  return (
    <div className="stats">
      <SpendNow budget={budget} />
      <Average label="Average of 24 hours" cost={day.data} />
      <Average label="Average of 7 days" cost={week.data} />
      <Average label="Average this month" cost={month.data} />
      <ForecastStat cost={month.data} />
      <CapStat budget={budget} />
      <JobsStat />
    </div>
  );
}

function costSince(since: number, signal: AbortSignal): Promise<Cost> {
  return client.get<Cost>(`/cost?since=${since}`, signal);
}

function SpendNow({ budget }: { budget: Budget }) {
  const { budget_per_hour: allowed, effective_budget_per_hour: effective } = budget;
  const pacing = pacingWords(allowed, effective, budget.max_spend_per_hour);
  return (
    <Stat
      label="Spend now"
      value={usdPerHour(budget.spend_now_per_hour)}
      note={
        pacing ? (
          <span title={pacing}>
            budget {usdPerHour(allowed)}, planned with {usdPerHour(effective)}
          </span>
        ) : (
          `budget ${usdPerHour(allowed)} on average`
        )
      }
    />
  );
}

function Average({ label, cost }: { label: string; cost: Cost | null }) {
  if (!cost) return <Stat label={label} value="–" note="asking…" />;
  const hours = hoursOf(cost);
  const { tone, words } = verdict(cost.average_spend_per_hour, cost.budget_per_hour, hours);
  const short = hours > 0 && cost.now - cost.since > (hours + 0.1) * HOUR_S;
  return (
    <Stat
      label={label}
      value={usdPerHour(cost.average_spend_per_hour)}
      tone={tone}
      note={
        <>
          {words}
          {short && tone !== "plain" && <div>{duration(hours * HOUR_S)} so far</div>}
        </>
      }
    />
  );
}

function ForecastStat({ cost }: { cost: Cost | null }) {
  if (!cost) return <Stat label="Forecast of the month" value="–" note="asking…" />;
  const { amount, allowed, tone, words } = forecastOf(cost);
  return (
    <Stat
      label="Forecast of the month"
      value={usd(amount)}
      tone={tone}
      note={
        <>
          {words}
          {tone !== "plain" && <div>it allows {usd(allowed)}</div>}
        </>
      }
    />
  );
}

function CapStat({ budget }: { budget: Budget }) {
  const cap = budget.max_spend_per_hour;
  if (cap === null) return <Stat label="Hard cap" value="no cap" note="only the average counts" />;
  const used = Math.round((budget.spend_now_per_hour / cap) * 100);
  return <Stat label="Hard cap" value={usdPerHour(cap)} note={`${used} % of it in use now`} />;
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
