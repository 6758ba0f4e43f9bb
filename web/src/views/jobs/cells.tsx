/** Cells of the table that move with the clock. Only those in sight are there, and tick. */
import { createContext, useContext, type MouseEvent, type ReactNode } from "react";

import { duration, moment, usd } from "../../format";
import { Progress } from "../../parts/basics";
import { useNow } from "../../state/hooks";
import { hasEnded, type SeenJob } from "../../state/live";
import { useMayStop } from "../../state/who";
import { costNow, endText, inOneUnit, leftNow, leftText, leftUsdNow, tookOf } from "./words";

export const Prices = createContext<ReadonlyMap<string, number>>(new Map());
/** Jobs that were asked to stop from here. */
export const Asked = createContext<ReadonlySet<string>>(new Set());
const Now = createContext(0);

/** One clock for all cells: only they are drawn again when it ticks, not the table around them. */
export function Clock({ children }: { children: ReactNode }) {
  return <Now value={useNow()}>{children}</Now>;
}

export function CostCell({ row }: { row: SeenJob }) {
  return usd(costNow(row, useContext(Prices), useContext(Now)));
}

export function LeftCell({ row }: { row: SeenJob }) {
  const now = useContext(Now);
  const left = leftNow(row, now);
  const took = tookOf(row);
  if (row.ended_at !== null && took !== null) {
    return (
      <span className="faint" title={`from submission to end, ${moment(row.ended_at)}`}>
        {`took ${coarse(took)}`}
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
    <span className="below-name faint">{left < 1 ? leftText(left) : `${coarse(left)} left`}</span>
  );
}

/** Minutes are enough where there is little room. */
function coarse(seconds: number): string {
  return duration(seconds < 3600 && seconds > 60 ? Math.floor(seconds / 60) * 60 : seconds);
}

export function ProgressCell({ row }: { row: SeenJob }) {
  return (
    <>
      <Progress done={row.done} label={`Progress of job ${row.id}`} />
      <LeftBelow row={row} />
    </>
  );
}

export function SubmittedCell({ row }: { row: SeenJob }) {
  const passed = Math.max(0, useContext(Now) - row.submitted_at);
  return <span title={moment(row.submitted_at)}>{`${inOneUnit(passed)} ago`}</span>;
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
