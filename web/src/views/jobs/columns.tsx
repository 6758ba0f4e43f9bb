/** What the table of jobs shows of each. */
import { gpus, plural, usd } from "../../format";
import { StateBadge } from "../../parts/basics";
import type { Column } from "../../parts/Table";
import { linkTo, live } from "../../state/hooks";
import type { SeenJob } from "../../state/live";
import { AgeCell, CostCell, LeftCell, ProgressCell, StopCell } from "./cells";
import { ageOf, epochText, leftNow, rescaled } from "./words";

/** `from`: the least width of the window, in pixels, that has room for it. */
type JobColumn = Column<SeenJob> & { from?: number };

function columns(onStop: (row: SeenJob) => void): JobColumn[] {
  return [
    {
      key: "id",
      head: "Job",
      track: "3.2rem",
      optional: true,
      numeric: true,
      value: (row) => Number(row.id),
      cell: (row) => row.id,
    },
    {
      key: "name",
      head: "Name",
      track: "minmax(6rem, 1.9fr)",
      value: (row) => row.name,
      cell: (row) => (
        <>
          <a
            href={linkTo("jobs", row.id)}
            tabIndex={-1}
            title={row.name}
            onClick={(event) => event.stopPropagation()}
          >
            {row.name}
          </a>
          <span className="below-name faint">
            {`job ${row.id}${row.width > 0 ? `, ${gpus(row.width, row.gpu_type)}` : ""}`}
          </span>
        </>
      ),
    },
    {
      key: "class",
      head: "Class",
      track: "minmax(6.4rem, 1.4fr)",
      optional: true,
      from: 900,
      value: (row) => row.class,
      cell: (row) => <span title={row.class}>{row.class}</span>,
    },
    {
      key: "state",
      head: "State",
      track: "5.4rem",
      value: (row) => row.state,
      cell: (row) => <StateBadge state={row.state} />,
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
      value: (row) => row.done,
      cell: (row) => <ProgressCell row={row} />,
    },
    {
      key: "left",
      head: "Time left",
      track: "7rem",
      optional: true,
      numeric: true,
      value: (row) => leftNow(row, live.picture.now),
      cell: (row) => <LeftCell row={row} />,
    },
    {
      key: "cost",
      head: "Cost so far",
      track: "5.4rem",
      optional: true,
      numeric: true,
      value: (row) => row.cost_usd,
      cell: (row) => <CostCell row={row} />,
    },
    {
      key: "to_end",
      head: "To the end",
      track: "5.2rem",
      optional: true,
      from: 1000,
      numeric: true,
      value: (row) => row.left_usd,
      cell: (row) => (row.left_usd === null || row.ended_at !== null ? "–" : usd(row.left_usd)),
    },
    {
      key: "rescalings",
      head: "Rescaled",
      track: "4.2rem",
      optional: true,
      from: 1200,
      numeric: true,
      value: rescaled,
      cell: (row) => (
        <span title={`and started ${plural(row.restarts, "time")} after a failure`}>
          {rescaled(row)}
        </span>
      ),
    },
    {
      key: "age",
      head: "Age",
      track: "6.2rem",
      optional: true,
      from: 1140,
      numeric: true,
      value: (row) => ageOf(row, live.picture.now),
      cell: (row) => <AgeCell row={row} />,
    },
    {
      key: "stop",
      head: "",
      track: "4.2rem",
      cell: (row) => <StopCell row={row} onStop={onStop} />,
    },
  ];
}

/** Those that a window of this width has room for. */
export function columnsFor(width: number, onStop: (row: SeenJob) => void): JobColumn[] {
  return columns(onStop).filter(({ from = 0 }) => width >= from);
}
