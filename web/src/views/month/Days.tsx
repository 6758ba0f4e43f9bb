import type { StatementDay } from "../../api/types";
import { ticksOf } from "../../charts/ticks";
import { usd } from "../../format";

const LINES = 4;

/** A bar for each day, as high as what was spent, with dollars at its side. */
export function Days({ days }: { days: readonly StatementDay[] }) {
  const most = Math.max(0, ...days.map((day) => day.total_usd));
  if (most === 0) return <p className="faint">Nothing was spent.</p>;
  const ticks = ticksOf({ label: "", unit: "usd" }, 0, most, LINES);
  return (
    <div className="month-chart">
      <div className="month-axis small faint" aria-hidden="true">
        {ticks.map(({ value, text }) => (
          <span key={value} style={{ bottom: part(value, most) }}>
            {text}
          </span>
        ))}
      </div>
      <ol className="month-days" aria-label="Spend by day (UTC)">
        {days.map((day) => (
          <li key={day.day} title={`${day.day}: ${usd(day.total_usd)}`}>
            <span className="unseen">{`${day.day}: ${usd(day.total_usd)}`}</span>
            <span className="month-bar" aria-hidden="true">
              <span style={{ height: part(day.total_usd, most) }} />
            </span>
            <span className="small faint" aria-hidden="true">
              {Number(day.day.slice(8))}
            </span>
          </li>
        ))}
      </ol>
    </div>
  );
}

function part(value: number, most: number): string {
  return `${(100 * value) / most}%`;
}
