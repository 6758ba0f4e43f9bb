import { useEffect, useMemo, useRef, useState } from "react";

import { ApiError } from "../../api/client";
import type { JobAnswer, JobDetails, JobHistory, LivePlan } from "../../api/types";
import { ChartsOf } from "../../charts/Frame";
import { Empty, Loading, Problem, Shown, StateBadge } from "../../parts/basics";
import { linkTo, useAnswer, usePicture } from "../../state/hooks";
import { hasEnded } from "../../state/live";
import { useMayStop } from "../../state/who";
import { ofPlan } from "../classes/model";
import { JobEvents } from "../events/JobEvents";
import { Artifacts } from "./Artifacts";
import { LifeCharts, TrainingCharts } from "./Charts";
import { Facts, Figures, RescaleCard, type SeenDetails } from "./Facts";
import { listAddress } from "./lastList";
import { Log } from "./Log";
import { workersOf } from "./logStream";
import { Spec } from "./Spec";
import { StopDialog } from "./StopDialog";
import { SweepCard } from "./Sweep";
import { PauseButton, TermsCard } from "./Terms";
import { pricesOf, reasonOf } from "./words";

const ASK_MS = 2000;
/** Costs grow though nothing happens. */
const HISTORY_MS = 10_000;

/** Everything about one job. */
export function JobPage({ id }: { id: string }) {
  const path = `/jobs/${encodeURIComponent(id)}`;
  const version = useVersion(id);
  const answer = useAnswer<JobAnswer>(path, version);
  const job = useSeen(answer.data?.job ?? null, id);
  const lives = job !== null && !hasEnded(job.state);
  const historyPath = answer.data ? `${path}/history` : null;
  const history = useAnswer<JobHistory>(historyPath, version, lives ? HISTORY_MS : 0);
  if (answer.error instanceof ApiError && [404, 422].includes(answer.error.status)) {
    return <NoSuchJob id={id} />;
  }
  if (!job) {
    return answer.error ? (
      <Problem error={answer.error} again={answer.again} />
    ) : (
      <Loading what={`job ${id}`} />
    );
  }
  const widths = (history.data?.runs ?? []).map((run) => run.width);
  const workers = workersOf(job.spec.launcher, [...widths, job.width]);
  return (
    <article className="job-page" aria-labelledby="job-name">
      <Header job={job} />
      <JobFigures job={job} />
      <ChartsOf value={`job ${id}`}>
        <Shown answer={history} what="its history">
          {(found) => <Charts job={job} history={found} />}
        </Shown>
      </ChartsOf>
      <div className="two">
        <div className="stack">
          <Facts job={job} />
          <TermsCard job={job} />
          <RescaleCard job={job} />
        </div>
        <JobEvents job={id} version={version} />
      </div>
      <SweepCard job={job} version={version} />
      <Artifacts job={id} version={version} />
      <Log job={id} workers={workers} over={hasEnded(job.state)} />
      <Spec spec={job.spec} />
    </article>
  );
}

/** Changes when the job does, at most every two seconds. */
function useVersion(id: string): unknown {
  const picture = usePicture();
  const row = picture.jobs.get(id) ?? picture.ended.get(id) ?? null;
  const [version, setVersion] = useState(row);
  const taken = useRef(0);
  useEffect(() => {
    if (row === version) return;
    const wait = Math.max(0, taken.current + ASK_MS - performance.now());
    const timer = setTimeout(() => {
      taken.current = performance.now();
      setVersion(row);
    }, wait);
    return () => clearTimeout(timer);
  }, [row, version]);
  return version;
}

/** The details, with what the picture knows since: it is newer. */
function useSeen(details: JobDetails | null, id: string): SeenDetails | null {
  const picture = usePicture();
  const row = picture.jobs.get(id) ?? picture.ended.get(id);
  return useMemo(() => {
    if (!details) return null;
    // Nothing grows or shrinks before the picture has told when.
    return { ...details, told_at: Infinity, ...row };
  }, [details, row]);
}

function NoSuchJob({ id }: { id: string }) {
  return (
    <Empty title={`There is no job ${id}`}>
      Jobs are numbered from 1, in the order of their submission.{" "}
      <a href={linkTo("jobs")}>All jobs</a>
    </Empty>
  );
}

function Header({ job }: { job: SeenDetails }) {
  const [stopping, setStopping] = useState(false);
  const [asked, setAsked] = useState(false);
  const over = hasEnded(job.state);
  const may = useMayStop();
  return (
    <header className="job-head">
      <a href={listAddress()} className="back">
        ← Jobs
      </a>
      <div className="row spread">
        <div className="row">
          <h1 id="job-name">{job.name}</h1>
          <StateBadge state={job.state} />
          {job.priority !== "normal" && (
            <span className={`badge priority ${job.priority}`}>{job.priority}</span>
          )}
          <span className="faint">
            job {job.id} · class <a href={linkTo("classes", job.class)}>{job.class}</a>
          </span>
        </div>
        {!over &&
          (asked || job.stop_requested ? (
            <span className="faint" role="status">
              stopping…
            </span>
          ) : (
            may(job) && (
              <div className="row">
                <PauseButton job={job} />
                <button type="button" onClick={() => setStopping(true)}>
                  Stop
                </button>
              </div>
            )
          ))}
      </div>
      <p>{reasonOf(job)}</p>
      {job.said && hasFailed(job) && (
        <p className="faint">
          Its log: <code>{job.said}</code>
        </p>
      )}
      {stopping && (
        <StopDialog job={job} onStopped={() => setAsked(true)} onClose={() => setStopping(false)} />
      )}
    </header>
  );
}

/** Whether its last run did, and no other has begun. */
function hasFailed(job: SeenDetails): boolean {
  return job.state === "failed" || job.state === "waiting";
}

function JobFigures({ job }: { job: SeenDetails }) {
  const { nodes, plan: number } = usePicture();
  const asked = number === null || hasEnded(job.state) ? null : "/plan";
  const plan = useAnswer<LivePlan>(asked, number).data?.plan ?? null;
  return <Figures job={job} prices={pricesOf(nodes)} plan={ofPlan(plan, job.class)} />;
}

function Charts({ job, history }: { job: SeenDetails; history: JobHistory }) {
  const span = { since: job.submitted_at, until: job.ended_at ?? history.now };
  if (history.runs.length === 0) return null;
  return (
    <>
      <LifeCharts history={history} {...span} />
      <TrainingCharts history={history} {...span} />
    </>
  );
}
