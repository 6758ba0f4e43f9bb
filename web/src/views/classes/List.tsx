import { useMemo, useState } from "react";

import type { ClassDocument, Plan } from "../../api/types";
import { duration, figure, percent, usd } from "../../format";
import { sorted, Table, type Column, type Order } from "../../parts/Table";
import { linkTo } from "../../state/hooks";
import { plannedWords } from "../planned";
import { ofPlan, shareOfSpend, sizeOf, sizeWords } from "./model";

interface Row {
  known: ClassDocument;
  planned: string;
  jctS: number | null;
  costUsd: number | null;
  share: number | null;
}

const COLUMNS: readonly Column<Row>[] = [
  {
    key: "name",
    head: "Class",
    track: "minmax(5rem, 1.4fr)",
    cell: ({ known }) => <a href={linkTo("classes", known.class)}>{known.class}</a>,
    value: ({ known }) => known.class,
  },
  {
    key: "jobs",
    head: "Jobs so far",
    track: "7rem",
    cell: ({ known }) => known.jobs.toLocaleString("en-US"),
    value: ({ known }) => known.jobs,
    numeric: true,
    optional: true,
  },
  {
    key: "arrivals",
    head: "Per hour",
    track: "5rem",
    cell: ({ known }) => figure(known.arrivals_per_hour),
    value: ({ known }) => known.arrivals_per_hour,
    numeric: true,
    optional: true,
  },
  {
    key: "size",
    head: "Mean work",
    track: "minmax(9rem, 1.2fr)",
    cell: ({ known }) => sizeWords(known),
    value: ({ known }) => sizeOf(known)?.seconds ?? null,
    numeric: true,
    optional: true,
  },
  {
    key: "planned",
    head: "Planned GPUs",
    track: "minmax(5rem, 2.2fr)",
    cell: ({ planned }) => <span title={planned}>{planned}</span>,
  },
  {
    key: "jct",
    head: "Mean JCT",
    track: "6.5rem",
    cell: ({ jctS }) => (jctS === null ? "–" : duration(jctS)),
    value: ({ jctS }) => jctS,
    numeric: true,
  },
  {
    key: "cost",
    head: "Cost per job",
    track: "7rem",
    cell: ({ costUsd }) => (costUsd === null ? "–" : usd(costUsd)),
    value: ({ costUsd }) => costUsd,
    numeric: true,
    optional: true,
  },
  {
    key: "share",
    head: "Of the spend",
    track: "7.5rem",
    cell: ({ share }) => (share === null ? "–" : percent(share)),
    value: ({ share }) => share,
    numeric: true,
    optional: true,
  },
];

export function List({ classes, plan }: { classes: readonly ClassDocument[]; plan: Plan | null }) {
  const [order, setOrder] = useState<Order>({ key: "share", down: true });
  const rows = useMemo(
    () =>
      sorted(
        classes.map((known) => rowOf(known, plan)),
        COLUMNS,
        order,
      ),
    [classes, plan, order],
  );
  return (
    <Table
      label="Classes"
      rows={rows}
      columns={COLUMNS}
      id={({ known }) => known.class}
      order={order}
      onOrder={setOrder}
      onOpen={({ known }) => (window.location.hash = linkTo("classes", known.class))}
    />
  );
}

function rowOf(known: ClassDocument, plan: Plan | null): Row {
  const mine = ofPlan(plan, known.class);
  return {
    known,
    planned: plannedWords(mine),
    jctS: mine?.average_jct_s ?? null,
    costUsd: mine?.cost_per_job ?? null,
    share: shareOfSpend(plan, known.class),
  };
}
