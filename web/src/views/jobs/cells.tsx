/** Cells of the table that move with the clock. Only those in sight are there, and tick. */
import { createContext, useContext, type MouseEvent, type ReactNode } from "react";

import { duration, gpus, moment, usd } from "../../format";
import { Progress } from "../../parts/basics";
import { linkTo, useNow } from "../../state/hooks";
import { hasEnded, type SeenJob } from "../../state/live";
import { useMayStop } from "../../state/who";
import { activeText, bestText, bestValue, statesText, type ListRow } from "./sweepRows";
import { costNow, endText, leftNow, leftText, leftUsdNow, timesOf, timesText } from "./words";

export const Prices = createContext<ReadonlyMap<string, number>>(new Map());
/** Jobs that were asked to stop from here. */
export const Asked = createContext<ReadonlySet<string>>(new Set());
const Now = createContext(0);

/** One clock for all cells: only they are drawn again when it ticks, not the table around them. */
export function Clock({ children }: { children: ReactNode }) {
  return <Now value={useNow()}>{children}</Now>;
}

/** The name of a job or a sweep, and what there is no column for. */
export function NameCell({ row }: { row: ListRow }) {
  const { group } = row;
  const held = row.width > 0 ? `, ${gpus(row.width, row.gpu_type)}` : "";
  const link = (
    <a
      href={linkTo("jobs", row.id)}
      tabIndex={-1}
      title={row.name}
      onClick={(event) => event.stopPropagation()}
    >
      {row.inside ?? row.name}
    </a>
  );
  if (!group) {
    return (
      <span className={row.inside === undefined ? undefined : "of-sweep"}>
        {link}
        {row.priority !== "normal" && (
          <span className={`badge priority ${row.priority}`}>{row.priority}</span>
        )}
        <span className="below-name faint">{`job ${row.id}${held}`}</span>
      </span>
    );
  }
  const said = [statesText(group), bestText(group)].filter(Boolean).join(" · ");
  return (
    <span className="sweep-name">
      <button
        type="button"
        className="quiet"
        tabIndex={-1}
        aria-expanded={group.open}
        aria-label={`Jobs of sweep ${row.id}`}
      >
        {group.open ? "▾" : "▸"}
      </button>
      <span>
        {link}
        <span className="sweep-said faint" title={said}>
          {activeText(group)}
        </span>
      </span>
    </span>
  );
}

/** The class; of a sweep, also what its best job came to. */
export function ClassCell({ row }: { row: ListRow }) {
  if (!row.group) return <span title={row.class}>{row.class}</span>;
  return (
    <span title={`${row.class} ${bestText(row.group)}`}>
      {row.class}
      <span className="sweep-said faint">{bestValue(row.group)}</span>
    </span>
  );
}

export function CostCell({ row }: { row: ListRow }) {
  const prices = useContext(Prices);
  const now = useContext(Now);
  return usd(row.group ? row.cost_usd : costNow(row, prices, now));
}

export function LeftCell({ row }: { row: SeenJob }) {
  const now = useContext(Now);
  const left = leftNow(row, now);
  if (row.ended_at !== null) {
    const times = timesOf(row, now);
    return (
      <span className="faint" title={`${timesText(times)}; ended ${moment(row.ended_at)}`}>
        {`after ${duration(times.sinceSubmission)}`}
      </span>
    );
  }
  if (left === null) return <span className="faint">–</span>;
  return <span title={endText(left, now)}>{leftText(left)}</span>;
}

export function LeftUsdCell({ row }: { row: SeenJob }) {
  const left = leftUsdNow(row, useContext(Now));
  return left === null ? "–" : usd(left);
}

/** Below the progress, where there is no room for a column. */
function LeftBelow({ row }: { row: SeenJob }) {
  const left = leftNow(row, useContext(Now));
  if (left === null) return null;
  return (
    <span className="below-name faint">{left < 1 ? leftText(left) : `${duration(left)} left`}</span>
  );
}

export function ProgressCell({ row }: { row: ListRow }) {
  return (
    <>
      <Progress done={row.done} label={`Progress of ${row.group ? "sweep" : "job"} ${row.id}`} />
      <LeftBelow row={row} />
    </>
  );
}

export function SubmittedCell({ row }: { row: SeenJob }) {
  const passed = Math.max(0, useContext(Now) - row.submitted_at);
  return <span title={`submitted ${moment(row.submitted_at)}`}>{duration(passed)}</span>;
}

export function OnGpusCell({ row }: { row: ListRow }) {
  const times = timesOf(row, useContext(Now));
  if (row.group) return <span className="faint">–</span>;
  return <span title={timesText(times)}>{duration(times.onGpus)}</span>;
}

/** Must not open the row that it is in. */
export function StopCell({ row, onStop }: { row: SeenJob; onStop: (row: SeenJob) => void }) {
  const asked = useContext(Asked).has(row.id);
  const may = useMayStop();
  if (hasEnded(row.state)) return null;
  if (asked || row.stop_requested) return <span className="faint small-print">stopping…</span>;
  if (!may(row)) return null;
  const press = (event: MouseEvent) => {
    event.stopPropagation();
    onStop(row);
  };
  return (
    <button type="button" className="small" onClick={press} aria-label={`Stop job ${row.id}`}>
      Stop
    </button>
  );
}
