/** What the table of jobs shows of each. */
import { gpus, plural } from "../../format";
import { StateBadge } from "../../parts/basics";
import type { Column } from "../../parts/Table";
import { live } from "../../state/hooks";
import type { SeenJob } from "../../state/live";
import {
  ClassCell,
  CostCell,
  LeftCell,
  LeftUsdCell,
  NameCell,
  OnGpusCell,
  ProgressCell,
  StopCell,
  SubmittedCell,
} from "./cells";
import { newestId, statesText, type ListRow } from "./sweepRows";
import { costNow, epochText, leftNow, leftUsdNow, pricesOf, timesOf } from "./words";

/** `from`: the least width of the window, in pixels, that has room for it. */
type JobColumn = Column<ListRow> & { from?: number };

/** Which job it is. */
const WHICH: readonly JobColumn[] = [
  {
    key: "id",
    head: "Job",
    track: "3.2rem",
    optional: true,
    numeric: true,
    value: newestId,
    cell: (row) => row.id,
  },
  {
    key: "name",
    head: "Name",
    track: "minmax(6rem, 1.9fr)",
    narrow: "minmax(3rem, 1.9fr)",
    value: (row) => row.name,
    cell: (row) => <NameCell row={row} />,
  },
  {
    key: "class",
    head: "Class",
    track: "minmax(6.4rem, 1.4fr)",
    optional: true,
    from: 900,
    value: (row) => row.class,
    cell: (row) => <ClassCell row={row} />,
  },
];

/** Who submitted it, where several people do. */
const OWNER: JobColumn = {
  key: "owner",
  head: "Owner",
  track: "minmax(4rem, 0.8fr)",
  optional: true,
  from: 1000,
  value: (row) => row.owner,
  cell: (row) => <span title={row.team ? `of team ${row.team}` : undefined}>{row.owner}</span>,
};

/** What it is at, and on what. */
const HOW_FAR: readonly JobColumn[] = [
  {
    key: "state",
    head: "State",
    track: "5.4rem",
    narrow: "4.8rem",
    value: (row) => row.state,
    cell: (row) =>
      row.group ? (
        <span title={statesText(row.group)}>
          <StateBadge state={row.state} />
        </span>
      ) : (
        <StateBadge state={row.state} />
      ),
  },
  {
    key: "epoch",
    head: "Epoch",
    track: "5.7rem",
    optional: true,
    from: 1080,
    value: (row) => row.epoch,
    cell: epochText,
  },
  {
    key: "gpus",
    head: "GPUs",
    track: "5.2rem",
    optional: true,
    value: (row) => row.width,
    cell: (row) => gpus(row.width, row.gpu_type),
  },
  {
    key: "done",
    head: "Progress",
    track: "minmax(5.7rem, 1.2fr)",
    narrow: "minmax(4.1rem, 1.2fr)",
    value: (row) => row.done,
    cell: (row) => <ProgressCell row={row} />,
  },
  {
    key: "left",
    head: "Time left",
    track: "7.4rem",
    optional: true,
    numeric: true,
    value: (row) => leftNow(row, live.picture.now),
    cell: (row) => <LeftCell row={row} />,
  },
];

/** What it costs. */
const MONEY: readonly JobColumn[] = [
  {
    key: "cost",
    head: "Cost so far",
    track: "5.4rem",
    optional: true,
    numeric: true,
    value: (row) => costNow(row, pricesOf(live.picture.nodes), live.picture.now),
    cell: (row) => <CostCell row={row} />,
  },
  {
    key: "to_end",
    head: "To the end",
    track: "5.2rem",
    optional: true,
    from: 1000,
    numeric: true,
    value: (row) => leftUsdNow(row, live.picture.now),
    cell: (row) => <LeftUsdCell row={row} />,
  },
];

/** What it has been through. */
const PAST: readonly JobColumn[] = [
  {
    key: "on_gpus",
    head: "On GPUs",
    track: "5.8rem",
    optional: true,
    from: 1300,
    numeric: true,
    value: (row) => timesOf(row, live.picture.now).onGpus,
    cell: (row) => <OnGpusCell row={row} />,
  },
  {
    key: "rescalings",
    head: "Rescalings",
    track: "5rem",
    optional: true,
    from: 1200,
    numeric: true,
    value: (row) => row.rescalings,
    cell: (row) => (
      <span title={`and ${plural(row.restarts, "restart")} after failures or losses`}>
        {row.rescalings}
      </span>
    ),
  },
  {
    key: "submitted",
    head: "Age",
    track: "6.4rem",
    optional: true,
    from: 1140,
    numeric: true,
    value: (row) => row.submitted_at,
    cell: (row) => <SubmittedCell row={row} />,
  },
];

function stopColumn(onStop: (row: SeenJob) => void): JobColumn {
  return {
    key: "stop",
    head: "",
    track: "4.2rem",
    narrow: "3.7rem",
    cell: (row) => (row.group ? null : <StopCell row={row} onStop={onStop} />),
  };
}

/** Those that a window of this width has room for. */
export function columnsFor(
  width: number,
  onStop: (row: SeenJob) => void,
  severalOwners = false,
): JobColumn[] {
  const whose = severalOwners ? [OWNER] : [];
  const all = [...WHICH, ...whose, ...HOW_FAR, ...MONEY, ...PAST, stopColumn(onStop)];
  return all.filter(({ from = 0 }) => width >= from);
}
