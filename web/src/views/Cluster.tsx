import { useMemo } from "react";

import type { Node } from "../api/types";
import { percent, plural, usdPerHour } from "../format";
import { Card, Empty, Loading, Stat } from "../parts/basics";
import { linkTo, usePicture } from "../state/hooks";
import { useCost } from "../state/ranges";
import { Unused } from "./budget/Unused";
import { Cells } from "./cluster/Cells";
import { byType, shareInUse, stateWords, total, type Sums, type TypeGroup } from "./cluster/model";
import { Nodes } from "./cluster/Nodes";
import { Usage } from "./cluster/Usage";
import "./cluster/cluster.css";

/** What is rented, who holds it, and how that went. */
export function Cluster({ rest = [] }: { rest?: string[] }) {
  const { nodes, heardAt, jobs, counts, complete } = usePicture();
  const asked = Number(rest[0] ?? NaN);
  const groups = useMemo(() => byType(nodes.values()), [nodes]);
  const all = useMemo(() => groups.flatMap((group) => group.list), [groups]);
  if (heardAt === 0) return <Loading what="the cluster" />;
  return (
    <>
      <h1>Cluster</h1>
      {complete && rest[0] !== undefined && <AskedFor id={rest[0]} node={nodes.get(asked)} />}
      {groups.length === 0 ? (
        <Nothing waiting={(counts.waiting ?? 0) + (counts.starting ?? 0)} />
      ) : (
        <>
          <Totals sums={total(groups)} />
          <PaidForNothing />
          <Legend />
          {groups.map((group) => (
            <Card key={group.gpuType}>
              <Cells group={group} jobs={jobs} note={typeWords(group)} asked={asked} />
            </Card>
          ))}
        </>
      )}
      <Usage />
      {all.length > 0 && <Nodes nodes={all} />}
    </>
  );
}

/** The node that a link led to: it is marked below, or it is gone by now. */
function AskedFor({ id, node }: { id: string; node: Node | undefined }) {
  const here = node && node.state !== "gone";
  return (
    <p className="note" role="status">
      <span>
        {here ? (
          <>
            <b>Node {id}</b>, marked below: {node.gpus}×{node.gpu_type}, {stateWords(node)},{" "}
            {plural(node.used_gpus, "GPU")} in use.
          </>
        ) : (
          <>
            <b>Node {id} is not there any more</b>: it was given back, or lost.
          </>
        )}{" "}
        <a href={`${linkTo("events")}?${new URLSearchParams({ search: `node ${id}` }).toString()}`}>
          What happened to it
        </a>
      </span>
      <a href={linkTo("cluster")} aria-label="Close this note">
        ✕
      </a>
    </p>
  );
}

function Nothing({ waiting }: { waiting: number }) {
  return (
    <Card>
      <Empty title="Nothing is rented now">
        {waiting > 0 ? (
          <p>
            {plural(waiting, "job")} {waiting === 1 ? "waits" : "wait"}: nodes are asked for as the
            budget allows. The events say what the service does about it.
          </p>
        ) : (
          <p>
            No job needs a GPU, so nothing is paid for. Nodes are rented as jobs come:{" "}
            <code className="mono">boa submit job.yaml</code>
          </p>
        )}
      </Empty>
    </Card>
  );
}

function Totals({ sums }: { sums: Sums }) {
  const share = shareInUse(sums);
  return (
    <div className="stats">
      <Stat
        label="GPUs rented"
        value={sums.rented.toLocaleString("en-US")}
        note={`on ${plural(sums.nodes, "node")}`}
      />
      <Stat
        label="In use"
        value={sums.used.toLocaleString("en-US")}
        note={share === null ? "nothing is charged yet" : `${percent(share)} of what is rented`}
      />
      <Stat
        label="Idle"
        value={sums.idle.toLocaleString("en-US")}
        note={sums.idle > 0 ? "ready, and no job holds them" : "every ready GPU has a job"}
      />
      <Stat
        label="Booting"
        value={sums.booting.toLocaleString("en-US")}
        note={sums.leaving > 0 ? `${sums.leaving} more being given back` : "asked for, not ready"}
      />
      <Stat label="Cost now" value={usdPerHour(sums.usdPerHour)} note="of all that is charged" />
    </div>
  );
}

/** Why GPUs that no job holds are there, in money. */
function PaidForNothing() {
  const { budget } = usePicture();
  const cost = useCost("day", budget?.budget_per_hour ?? 0).data;
  return cost && <Unused cost={cost} />;
}

function typeWords(group: TypeGroup): string {
  const share = shareInUse(group);
  const parts = [
    plural(group.nodes, "node"),
    `${group.used.toLocaleString("en-US")} of ${plural(group.rented, "GPU")} in use${share === null ? "" : ` (${percent(share)})`}`,
    group.idle > 0 && `${group.idle} idle`,
    group.booting > 0 && `${group.booting} booting`,
    group.leaving > 0 && `${group.leaving} being given back`,
    usdPerHour(group.usdPerHour),
  ];
  return parts.filter(Boolean).join(" · ");
}

function Legend() {
  return (
    <ul className="legend" aria-label="What the cells mean">
      <li>
        <svg width="32" height="14" aria-hidden="true">
          <rect width="14" height="14" fill="hsl(222 var(--job-s) var(--job-l))" />
          <rect x="18" width="14" height="14" fill="hsl(85 var(--job-s) var(--job-l))" />
        </svg>
        held by a job, a colour each
      </li>
      <li>
        <svg width="14" height="14" aria-hidden="true">
          <rect className="cell-idle" x="1" y="1" width="12" height="12" />
        </svg>
        idle
      </li>
      <li>
        <svg width="14" height="14" aria-hidden="true">
          <path className="hatch" d="M0 7L7 0M0 14L14 0M7 14L14 7" />
          <rect className="cell-booting" x="1" y="1" width="12" height="12" fill="none" />
        </svg>
        booting
      </li>
      <li>
        <svg width="14" height="14" aria-hidden="true">
          <rect className="cell-leaving" x="1" y="1" width="12" height="12" />
        </svg>
        being given back
      </li>
      <li>Point at a cell, or go there with the arrow keys; a click or Enter opens the job.</li>
    </ul>
  );
}
