import { useMemo } from "react";

import type { ClassChange } from "../../api/types";
import { duration, plural, usd, usdPerHour } from "../../format";
import { linkTo } from "../../state/hooks";
import { classOf, streamWords } from "../../streams";
import { Wide } from "../../parts/Wide";
import { changeWords, epochWords, differs, stretches } from "./widths";

interface ClassTableProps {
  changes: readonly ClassChange[];
  tried: number;
  /** Whether that is the budget there is. */
  same: boolean;
}

/** How every class's GPUs would change; those that would not are grey. */
export function ClassTable({ changes, tried, same }: ClassTableProps) {
  const sorted = useMemo(
    () =>
      changes
        .map((change) => ({ change, moved: differs(change) }))
        .sort((a, b) => Number(b.moved) - Number(a.moved)),
    [changes],
  );
  const count = sorted.filter(({ moved }) => moved).length;
  return (
    <section aria-label="Classes" className="stack">
      <h3>{headingOf(count, changes.length, same ? null : tried)}</h3>
      <Wide label="Classes">
        <table className="plain folding">
          <thead>
            <tr>
              <th scope="col">Class</th>
              <th scope="col">GPUs of a job</th>
              <th scope="col" className="numeric">
                Average JCT
              </th>
              <th scope="col" className="numeric">
                Cost per job
              </th>
              <th scope="col" className="numeric">
                Active jobs
              </th>
            </tr>
          </thead>
          <tbody>
            {sorted.map(({ change, moved }) => (
              <Row key={change.name} change={change} moved={moved} />
            ))}
          </tbody>
        </table>
      </Wide>
    </section>
  );
}

/** `tried`: null is the budget there is. */
export function headingOf(count: number, all: number, tried: number | null): string {
  if (tried === null) return "Classes at today’s budget";
  const at = `At ${usdPerHour(tried)}`;
  if (count === 0) return `${at} no class gets other GPUs`;
  return `${at} ${count} of ${plural(all, "class", "classes")} would get other GPUs`;
}

function Row({ change, moved }: { change: ClassChange; moved: boolean }) {
  const { before: known, unchanged: before, after } = change;
  const jct = (seconds: number) => duration(seconds);
  return (
    <tr className={moved ? "" : "faint"}>
      <th scope="row">
        <a href={linkTo("classes", classOf(change.name))}>{streamWords(change.name)}</a>
        {!moved && <div className="small">unchanged</div>}
        {!known && <div className="small">new to the plan</div>}
      </th>
      <td data-label="GPUs of a job">
        <Widths change={change} />
      </td>
      <td className="numeric" data-label="Average JCT">
        <FromTo from={jct(before.average_jct_s)} to={jct(after.average_jct_s)} />
      </td>
      <td className="numeric" data-label="Cost per job">
        <FromTo from={usd(before.cost_per_job)} to={usd(after.cost_per_job)} />
      </td>
      <td className="numeric" data-label="Active jobs">
        {change.active_jobs}
      </td>
    </tr>
  );
}

function FromTo({ from, to }: { from: string; to: string }) {
  return from === to ? to : `${from} → ${to}`;
}

const MOST = 6;
/** Stretches of a class that are listed before the rest is folded away. */

function Widths({ change }: { change: ClassChange }) {
  const found = stretches(change.unchanged, change.after);
  const line = (stretch: (typeof found)[number]) => (
    <li key={stretch.first} className={stretch.changed ? "" : "faint"}>
      <span className="faint">{epochWords(stretch, found.length === 1)}:</span>{" "}
      {changeWords(stretch)}
    </li>
  );
  return (
    <>
      <ul className="widths">{found.slice(0, MOST).map(line)}</ul>
      {found.length > MOST && (
        <details>
          <summary>{found.length - MOST} more stretches of epochs</summary>
          <ul className="widths">{found.slice(MOST).map(line)}</ul>
        </details>
      )}
    </>
  );
}
