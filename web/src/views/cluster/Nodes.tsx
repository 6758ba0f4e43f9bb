import { useMemo, useState } from "react";

import type { Node } from "../../api/types";
import { duration, usdPerHour } from "../../format";
import { Card } from "../../parts/basics";
import { sorted, Table, type Column, type Order } from "../../parts/Table";
import { linkTo, useNow } from "../../state/hooks";
import { emptyWords } from "./NodeWords";
import { since, stateWords } from "./model";

const MOST_LINKS = 4;

const COLUMNS: readonly Column<Node>[] = [
  {
    key: "id",
    head: "Node",
    track: "3.8rem",
    cell: ({ id }) => <a href={linkTo("cluster", String(id))}>{id}</a>,
    value: (node) => node.id,
  },
  {
    key: "type",
    head: "Type",
    track: "minmax(3rem, 1fr)",
    cell: (node) => node.gpu_type,
    value: (node) => node.gpu_type,
  },
  {
    key: "state",
    head: "State",
    track: "minmax(4.5rem, 1fr)",
    cell: (node) => <span className={`badge ${node.state}`}>{stateWords(node)}</span>,
    value: (node) => node.state,
  },
  {
    key: "used",
    head: "In use",
    track: "4rem",
    cell: (node) => `${node.used_gpus} of ${node.gpus}`,
    value: (node) => node.used_gpus,
    numeric: true,
  },
  {
    key: "jobs",
    head: "Jobs",
    track: "minmax(3.5rem, 2fr)",
    cell: (node) => <JobLinks node={node} />,
  },
  {
    key: "price",
    head: "Price",
    track: "6rem",
    cell: (node) => usdPerHour(node.price_per_hour),
    value: (node) => node.price_per_hour,
    numeric: true,
    optional: true,
  },
  {
    key: "since",
    head: "For",
    track: "6.5rem",
    cell: (node) => <Since node={node} />,
    value: since,
    numeric: true,
    optional: true,
  },
  {
    key: "address",
    head: "Address",
    track: "minmax(6rem, 1.5fr)",
    cell: (node) => <span className="mono">{node.address || "–"}</span>,
    value: (node) => node.address || null,
    optional: true,
  },
  {
    key: "note",
    head: "Why",
    track: "minmax(6rem, 3fr)",
    cell: (node) => <Note node={node} />,
    optional: true,
  },
];

/** The same nodes in words, with what a cell has no room for. */
export function Nodes({ nodes }: { nodes: readonly Node[] }) {
  const [order, setOrder] = useState<Order>({ key: "id", down: false });
  const rows = useMemo(() => sorted(nodes, COLUMNS, order), [nodes, order]);
  return (
    <Card title="Nodes">
      <Table
        label="Nodes"
        rows={rows}
        columns={COLUMNS}
        id={(node) => String(node.id)}
        order={order}
        onOrder={setOrder}
        height="24rem"
      />
    </Card>
  );
}

function JobLinks({ node }: { node: Node }) {
  if (node.held.length === 0) return <span className="faint">none</span>;
  const more = node.held.length - MOST_LINKS;
  return (
    <>
      {node.held.slice(0, MOST_LINKS).map(({ job, gpus }, index) => (
        <span key={job}>
          {index > 0 && ", "}
          <a href={linkTo("jobs", job)} title={`${gpus} of its GPUs are here`}>
            {job}
          </a>
        </span>
      ))}
      {more > 0 && ` and ${more} more`}
    </>
  );
}

function Since({ node }: { node: Node }) {
  const now = useNow();
  return duration(Math.max(0, now - since(node)));
}

function Note({ node }: { node: Node }) {
  const now = useNow();
  if (node.why) return <span title={node.why}>{node.why}</span>;
  if (node.empty_since === null) return null;
  return (
    <span className="faint" title={emptyWords(node.empty_since, now)}>
      empty for {duration(Math.max(0, now - node.empty_since))}
    </span>
  );
}
