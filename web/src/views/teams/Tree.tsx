import type { Budget } from "../../api/types";
import { percent, usdPerHour } from "../../format";
import { linkTo } from "../../state/hooks";
import {
  colorsOf,
  depthsOf,
  loanText,
  loanWords,
  othersPerHour,
  paidFor,
  same,
  scaleOf,
  spendWords,
  type Part,
} from "./model";
import { briefTerms } from "./terms";
import "../budget/budget.css";
import "./teams.css";

interface TreeProps {
  parts: readonly Part[];
  /** Everybody who shares the budget; without, these are all. */
  among?: readonly Part[];
  label: string;
}

/** Those who share the budget, one row each, below the one they are a part of. */
export function Tree({ parts, among = parts, label }: TreeProps) {
  const colors = colorsOf(among);
  const depths = depthsOf(parts);
  const scale = scaleOf(parts);
  const least = Math.min(...depths.values());
  return (
    <>
      <table className="plain folding teams" aria-label={label}>
        <thead>
          <tr>
            <th scope="col">Team</th>
            <th scope="col">Now</th>
            {["Spends now", "Guaranteed", "At most", "Loan"].map((head) => (
              <th key={head} scope="col" className="numeric">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {parts.map((part) => (
            <Row
              key={part.name}
              part={part}
              depth={(depths.get(part.name) ?? 0) - least}
              scale={scale}
              color={colors.get(part.name) ?? "var(--c1)"}
            />
          ))}
        </tbody>
      </table>
      <Legend parts={parts} />
    </>
  );
}

interface BarProps {
  part: Part;
  scale: number;
  color: string;
}

function Row({ part, depth, scale, color }: BarProps & { depth: number }) {
  const { right_now_per_hour: now, budget_per_hour: right, max_per_hour: most } = part;
  return (
    <tr>
      <th scope="row" style={{ paddingLeft: `${depth * 1.1}rem` }}>
        <a href={linkTo("teams", part.name)}>{part.name}</a>
        {paidFor(part) && <span className="small faint team-classes">{paidFor(part)}</span>}
      </th>
      <td className="team-now">
        <Bar part={part} scale={scale} color={color} />
        <span className="small faint">{spendWords(part)}</span>
        {briefTerms(part).map((words) => (
          <span key={words} className="small team-term">
            {words}
          </span>
        ))}
      </td>
      <td className="numeric" data-label="Spends now">
        {usdPerHour(part.spend_now_per_hour)}
      </td>
      <td className="numeric" data-label="Guaranteed">
        <span>
          {usdPerHour(right)}
          {!same(now, right) && (
            <span className="small faint team-also">{usdPerHour(now)} now</span>
          )}
        </span>
      </td>
      <td className="numeric" data-label="At most">
        {most === null ? "–" : usdPerHour(most)}
      </td>
      <td className="numeric" data-label="Loan" title={loanWords(part) || undefined}>
        {loanText(part)}
      </td>
    </tr>
  );
}

/** Spend as a bar, with a mark for each of its limits. */
function Bar({ part, scale, color }: BarProps) {
  const { right_now_per_hour: now, budget_per_hour: right, max_per_hour: most } = part;
  const spend = part.spend_now_per_hour;
  const at = (value: number) => `${Math.min(1, value / scale) * 100}%`;
  const words = [
    `${usdPerHour(spend)} spent now`,
    `${usdPerHour(right)} guaranteed`,
    !same(now, right) && `${usdPerHour(now)} while loans are paid back`,
    most !== null && `${usdPerHour(most)} at most`,
  ];
  return (
    <span className="team-bar" role="img" aria-label={words.filter(Boolean).join(", ")}>
      <span className="team-spend" style={{ width: at(spend), background: color }} />
      <span className="team-mark right" style={{ left: at(right) }} />
      {!same(now, right) && <span className="team-mark now" style={{ left: at(now) }} />}
      {most !== null && <span className="team-mark most" style={{ left: at(most) }} />}
    </span>
  );
}

/** Of the marks that there are. */
function Legend({ parts }: { parts: readonly Part[] }) {
  const moved = parts.some((part) => !same(part.right_now_per_hour, part.budget_per_hour));
  const held = parts.some((part) => part.max_per_hour !== null);
  const marks = [
    ["spend", "spends now"],
    ["right", "guaranteed"],
    moved && ["now", "guaranteed until loans are paid back"],
    held && ["most", "may spend at most, on average"],
  ].filter((mark) => mark !== false);
  return (
    <ul className="legend" aria-label="What the marks mean">
      {marks.map(([mark, words]) => (
        <li key={mark}>
          <span className={`team-key ${mark}`} aria-hidden="true" />
          {words}
        </li>
      ))}
    </ul>
  );
}

/** All that is spent at this moment, by team. */
export function Shares({ budget, parts }: { budget: Budget; parts: readonly Part[] }) {
  const total = budget.spend_now_per_hour;
  const teams = parts.filter(({ above }) => above === null);
  const colors = colorsOf(parts);
  const rows = teams.map((part) => ({
    name: part.name,
    href: linkTo("teams", part.name),
    spend: part.spend_now_per_hour,
    color: colors.get(part.name),
  }));
  const others = othersPerHour(budget, parts);
  return (
    <div className="parts">
      <div className="parts-bar" aria-hidden="true">
        {rows.map(({ name, spend, color }) => (
          <span key={name} style={{ width: part(spend, total), background: color }} />
        ))}
      </div>
      <ul className="legend" aria-label="Spend now by team">
        <li>
          <b>{usdPerHour(total)} is spent now</b>
        </li>
        {rows.map(({ name, href, spend, color }) => (
          <li key={name}>
            <span className="dot" style={{ background: color }} />
            <a href={href}>{name}</a> {usdPerHour(spend)}
            {total > 0 && ` (${percent(spend / total)})`}
          </li>
        ))}
        {others >= 0.005 && (
          <li>
            <span className="dot no-team" />
            no team’s: <a href={linkTo("classes")}>classes</a> that none pays for, and what is there
            while nobody runs, {usdPerHour(others)}
          </li>
        )}
      </ul>
    </div>
  );
}

function part(spend: number, total: number): string {
  return total > 0 ? `${(spend / total) * 100}%` : "0";
}
