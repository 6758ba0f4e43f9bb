import type { BudgetCalendar } from "../../api/types";
import { usdPerHour } from "../../format";
import { Card } from "../../parts/basics";
import { useNow } from "../../state/hooks";
import {
  clockOf,
  dayWords,
  DAYS,
  daysOf,
  minuteOfWeek,
  MINUTES_PER_DAY,
  periodsOf,
  type Day,
  type Period,
} from "./weekHours";
import "./week.css";

/** The hours of the week, by what may be spent in them. */
export function Week({ calendar }: { calendar: BudgetCalendar }) {
  const now = useNow(60_000);
  const minute = now === 0 ? null : minuteOfWeek(now, calendar.time_zone);
  const today = minute === null ? -1 : Math.floor(minute / MINUTES_PER_DAY);
  const hour = minute === null ? 0 : minute % MINUTES_PER_DAY;
  const periods = periodsOf(calendar.week);
  const shades = new Map(periods.map(({ name, shade }) => [name, shade]));
  return (
    <Card title="The budget’s week">
      <p className="note">{calendar.words}</p>
      <div>
        <ol className="week" aria-label="Periods of the week">
          {daysOf(calendar.week).map((day, number) => (
            <DayRow
              key={day.name}
              day={day}
              shades={shades}
              now={number === today ? hour : undefined}
            />
          ))}
        </ol>
        <div className="week-hours small faint" aria-hidden="true">
          {[0, 6, 12, 18, 24].map((each) => (
            <span key={each}>{each}</span>
          ))}
        </div>
      </div>
      <ul className="legend" aria-label="What the shades mean">
        {periods.map((period) => (
          <Named key={period.name} period={period} calendar={calendar} />
        ))}
        {today >= 0 && (
          <li>
            <span className="week-key" aria-hidden="true" />
            now: {DAYS[today]} {clockOf(hour)}, {calendar.time_zone}
          </li>
        )}
      </ul>
      <p className="faint small">
        {usdPerHour(calendar.week_budget_per_hour)} on average over the week; the more money, the
        stronger the colour.
      </p>
    </Card>
  );
}

interface DayProps {
  day: Day;
  shades: ReadonlyMap<string, number>;
  /** Minute of the day, if this is today. */
  now: number | undefined;
}

function DayRow({ day, shades, now }: DayProps) {
  return (
    <li>
      <span className="unseen">{dayWords(day)}</span>
      <span className="small faint" aria-hidden="true">
        {day.name}
      </span>
      <span className="week-day" aria-hidden="true">
        {day.stretches.map(({ period, budget, begins, ends }) => (
          <span
            key={begins}
            className="week-stretch"
            title={`${period}, ${clockOf(begins)} to ${clockOf(ends)}: ${usdPerHour(budget)}`}
            style={{ width: share(ends - begins), background: shaded(shades.get(period) ?? 100) }}
          />
        ))}
        {now !== undefined && <span className="week-now" style={{ left: share(now) }} />}
      </span>
    </li>
  );
}

function Named({ period, calendar }: { period: Period; calendar: BudgetCalendar }) {
  const { name, budget, shade } = period;
  const average = calendar.average_per_hour[name];
  return (
    <li>
      <span className="week-swatch" style={{ background: shaded(shade) }} aria-hidden="true" />
      <span>
        {name === calendar.period ? <b>{name}</b> : name}: {usdPerHour(budget)}
        {average !== undefined && `, ${usdPerHour(average)} spent in it on average`}
      </span>
    </li>
  );
}

function share(minutes: number): string {
  return `${(100 * minutes) / MINUTES_PER_DAY}%`;
}

function shaded(percent: number): string {
  return `color-mix(in oklab, var(--c3) ${percent}%, var(--soft))`;
}
