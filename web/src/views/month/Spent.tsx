import type { Statement } from "../../api/types";
import { percent, usd } from "../../format";
import { Card } from "../../parts/basics";
import { alertsOf, amountOf, budgetPeriod, dayWords } from "./model";

/** How much of the month's budget is spent, and which alerts that has passed. */
export function Spent({ found }: { found: Statement }) {
  const { total_usd: spent, budget_usd: budget, complete } = found;
  if (!(budget > 0)) return null;
  const whole = Math.max(spent, budget);
  const share = (amount: number) => `${(100 * amount) / whole}%`;
  const alerts = alertsOf(found);
  const within = alerts.filter(({ percent }) => (percent / 100) * budget <= whole);
  const left = budget - spent;
  return (
    <Card title="The month’s budget">
      <p>
        <b>{percent(spent / budget)}</b> of {usd(budget)} for {budgetPeriod(found)}{" "}
        {complete ? "was" : "is"} spent: {amountOf(found, "total")}, {usd(Math.abs(left))}{" "}
        {left < 0 ? "more than there is" : "left"}.
      </p>
      <div
        className="month-spent"
        role="img"
        aria-label={`${percent(spent / budget)} of the budget`}
      >
        <span className={left < 0 ? "over" : ""} style={{ width: share(spent) }} />
        {within.map(({ percent }) => (
          <i key={percent} style={{ left: share((percent / 100) * budget) }} />
        ))}
      </div>
      <ul className="legend" aria-label="Alerts">
        {alerts.map(({ percent, day }) => (
          <li key={percent}>
            {percent} %: {day === null ? "not reached" : <b>passed on {dayWords(day)}</b>}
          </li>
        ))}
      </ul>
    </Card>
  );
}
