import { useState } from "react";

import { ApiError } from "../../api/client";
import type { SweepAnswer, SweepDetails } from "../../api/types";
import { figure, usd } from "../../format";
import { Card, Empty, Loading, Problem, Shown, StateBadge } from "../../parts/basics";
import { Confirm } from "../../parts/Dialog";
import { linkTo, useAnswer, usePicture } from "../../state/hooks";
import { client } from "../../state/session";
import { useMayStop } from "../../state/who";
import { Wide } from "../../parts/Wide";
import type { SeenDetails } from "./Facts";
import { listAddress } from "./lastList";
import { bestText, drawnText, statesText } from "./sweepRows";

const ASK_MS = 5000;

export function isSweep(id: string): boolean {
  return /^s[0-9]+$/.test(id);
}

/** Everything about one sweep: what its jobs came to, the best first. */
export function SweepPage({ id }: { id: string }) {
  const { lastEvent } = usePicture();
  const answer = useAnswer<SweepAnswer>(`/sweeps/${id}`, lastEvent, ASK_MS);
  if (answer.error instanceof ApiError && answer.error.status === 404) {
    return (
      <Empty title={`There is no sweep ${id}`}>
        <a href={linkTo("jobs")}>All jobs</a>
      </Empty>
    );
  }
  if (!answer.data) {
    return answer.error ? (
      <Problem error={answer.error} again={answer.again} />
    ) : (
      <Loading what={`sweep ${id}`} />
    );
  }
  const { sweep } = answer.data;
  return (
    <article className="job-page" aria-labelledby="sweep-name">
      <Header sweep={sweep} />
      <Card title="Jobs">
        <Members sweep={sweep} />
      </Card>
    </article>
  );
}

function Header({ sweep }: { sweep: SweepDetails }) {
  const [stopping, setStopping] = useState(false);
  const may = useMayStop();
  const rule = sweep.halving;
  return (
    <header className="job-head">
      <a href={listAddress()} className="back">
        ← Jobs
      </a>
      <div className="row spread">
        <div className="row">
          <h1 id="sweep-name">{sweep.name}</h1>
          <span className="faint">
            sweep {sweep.id} · class <a href={linkTo("classes", sweep.class)}>{sweep.class}</a>
          </span>
        </div>
        {sweep.ended_at === null && may(sweep) && (
          <button type="button" onClick={() => setStopping(true)}>
            Stop
          </button>
        )}
      </div>
      <p>{[statesText(sweep), usd(sweep.cost_usd), bestText(sweep)].filter(Boolean).join(" · ")}</p>
      {rule && (
        <p className="faint">
          {`One of ${rule.factor} goes on after ${rule.rungs.join(", ")} epochs, by ${rule.metric} ` +
            `(${rule.better === "min" ? "less" : "more"} is better).`}
        </p>
      )}
      {stopping && (
        <Confirm
          title={`Stop sweep ${sweep.id} (${sweep.name})?`}
          action="Stop all its jobs"
          dangerous
          onConfirm={() => client.post<unknown>(`/sweeps/${sweep.id}/stop`).then(() => undefined)}
          onClose={() => setStopping(false)}
        >
          <p>Each gets SIGTERM and its grace time, and is over. Checkpoints stay.</p>
        </Confirm>
      )}
    </header>
  );
}

/** The other jobs of a job's sweep, with what they came to. */
export function SweepCard({ job, version }: { job: SeenDetails; version: unknown }) {
  const answer = useAnswer<SweepAnswer>(job.sweep ? `/sweeps/${job.sweep}` : null, version);
  if (!job.sweep) return null;
  const link = <a href={linkTo("jobs", job.sweep)}>All of it</a>;
  return (
    <Card title={`Sweep ${job.sweep}`} tools={link}>
      <Shown answer={answer} what="its sweep">
        {({ sweep }) => <Members sweep={sweep} here={job.id} />}
      </Shown>
    </Card>
  );
}

/** `here`: the job whose page it is. */
function Members({ sweep, here = "" }: { sweep: SweepDetails; here?: string }) {
  return (
    <Wide label="Jobs of the sweep">
      <table className="plain">
        <thead>
          <tr>
            <th scope="col">Job</th>
            <th scope="col">Parameters</th>
            <th scope="col">State</th>
            <th scope="col" className="numeric">
              Epoch
            </th>
            <th scope="col" className="numeric">
              {sweep.metric}
            </th>
            <th scope="col" className="numeric">
              Cost
            </th>
          </tr>
        </thead>
        <tbody>
          {bestFirst(sweep).map((one) => (
            <tr key={one.job} aria-current={one.job === here || undefined}>
              <td>
                {one.job === here ? (
                  <b>{one.job}</b>
                ) : (
                  <a href={linkTo("jobs", one.job)}>{one.job}</a>
                )}
              </td>
              <td>{drawnText(one.parameters)}</td>
              <td title={one.reason}>
                <StateBadge state={one.state as SeenDetails["state"]} />
              </td>
              <td className="numeric">{one.epoch + 1}</td>
              <td className="numeric">{one.value === null ? "–" : figure(one.value)}</td>
              <td className="numeric">{usd(one.cost_usd)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}

/** Those without a value last. */
export function bestFirst(sweep: SweepDetails): SweepDetails["members"] {
  const sign = sweep.halving?.better === "max" ? -1 : 1;
  const worth = ({ value }: { value: number | null }) => (value === null ? Infinity : sign * value);
  return [...sweep.members].sort(
    (one, other) => compare(worth(one), worth(other)) || Number(one.job) - Number(other.job),
  );
}

function compare(one: number, other: number): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
