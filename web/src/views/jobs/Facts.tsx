import type { ReactNode } from "react";

import type { JobDetails, PlanClass } from "../../api/types";
import { duration, figure, gpus, moment, plural, usd } from "../../format";
import { Card, Progress, Stat } from "../../parts/basics";
import { linkTo, useNow } from "../../state/hooks";
import { hasEnded, type SeenJob } from "../../state/live";
import { Wide } from "../../parts/Wide";
import { jobPlannedWords } from "../planned";
import { Payer, useIsShared, usePayer } from "../teams/Payer";
import { rescaleParts } from "./timeline";
import {
  capital,
  costNow,
  endText,
  epochText,
  leftNow,
  leftText,
  leftUsdNow,
  timesOf,
} from "./words";

export type SeenDetails = JobDetails & SeenJob;

interface FiguresProps {
  job: SeenDetails;
  prices: ReadonlyMap<string, number>;
  /** Of its class. */
  plan: PlanClass | null;
}

/** The figures that one looks for first. */
export function Figures({ job, prices, plan }: FiguresProps) {
  const now = useNow();
  const over = hasEnded(job.state);
  const left = leftNow(job, now);
  const rest = leftUsdNow(job, now);
  const times = timesOf(job, now);
  return (
    <div className="stats">
      <Stat
        label="Progress"
        value={<Progress done={job.done} label="Progress" />}
        note={`epoch ${epochText(job)}`}
      />
      {over ? (
        <Stat
          label="Since submission"
          value={duration(times.sinceSubmission)}
          note={`to its end: ${duration(times.onGpus)} on GPUs, ${duration(times.waiting)} waiting`}
        />
      ) : (
        <Stat
          label="Time left"
          value={left === null ? "–" : leftText(left)}
          note={left === null ? unknownEnd(job) : endText(left, now)}
        />
      )}
      <Stat
        label="GPUs"
        value={gpus(job.width, job.gpu_type)}
        note={over ? "given back" : jobPlannedWords(job, plan)}
      />
      <Stat
        label={over ? "Cost" : "Cost so far"}
        value={usd(costNow(job, prices, now))}
        note={
          over ? "in all" : rest === null ? "to the end: not known" : `${usd(rest)} more to the end`
        }
      />
    </div>
  );
}

/** A command that tells nothing of itself may be at any point. */
function unknownEnd(job: SeenDetails): string {
  const silent = job.state === "running" && job.done === null;
  return silent ? "it has reported no progress" : "not known yet";
}

const WAITING = "without GPUs: in the queue, paused, or between two tries";

type Fact = [name: string, value: ReactNode];

/** Metrics of `boa.train.torch` that count samples. */
const IN_SAMPLES = new Set(["batch_size", "noise_scale"]);

export function Facts({ job }: { job: SeenDetails }) {
  const { total } = job.rescale_s;
  const [isShared, payer] = [useIsShared(), usePayer(job.class, job.payer)];
  const times = timesOf(job, useNow());
  const running: Fact[] = [
    ["Last start took", total === undefined ? "–" : `${duration(total)} until it trained`],
    ["Runs on", <Where key="where" job={job} />],
  ];
  const owner = job.team ? `${job.owner}, of team ${job.team}` : job.owner;
  const facts: Fact[] = [
    ...(job.owner ? [["Submitted by", owner] satisfies Fact] : []),
    ...(isShared ? [["Paid for by", <Payer key="payer" of={payer} />] satisfies Fact] : []),
    ["Submitted", moment(job.submitted_at)],
    ["Started", job.started_at === null ? "not yet" : moment(job.started_at)],
    ...(job.ended_at === null ? [] : [["Ended", moment(job.ended_at)] satisfies Fact]),
    ["On GPUs", duration(times.onGpus)],
    ["Waiting", <span title={WAITING}>{duration(times.waiting)}</span>],
    ["Since submission", duration(times.sinceSubmission)],
    ["Rescalings", job.rescalings],
    ["Restarts after failures or losses", job.restarts],
    ["Exit code", job.exit_code === null ? "–" : exitText(job.exit_code)],
    ...(hasEnded(job.state) ? [] : running),
    ["Step", job.step === null ? "not reported" : job.step.toLocaleString("en-US")],
    ["Loss", job.loss === null ? "not reported" : figure(job.loss)],
  ];
  const said = Object.entries(job.metrics).map(([name, value]): Fact => [
    capital(name.replaceAll("_", " ")),
    IN_SAMPLES.has(name) ? `${figure(value)} samples` : figure(value),
  ]);
  return (
    <Card title="Facts">
      <dl className="facts">
        {[...facts, ...said].map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}

/** The service writes a signal n as -n. */
function exitText(code: number): string {
  return code < 0 ? `ended by signal ${-code}` : String(code);
}

function Where({ job }: { job: JobDetails }) {
  if (job.held.length === 0) return "–";
  return (
    <span className="where">
      {job.held.map(({ node, gpus: count }) => (
        <a key={node} href={linkTo("cluster", String(node))}>
          node {node} ({plural(count, "GPU")})
        </a>
      ))}
    </span>
  );
}

/** What it took until the run that is there now trained. */
export function RescaleCard({ job }: { job: JobDetails }) {
  const parts = rescaleParts(job.rescale_s);
  if (parts.length === 0) return null;
  return (
    <Card title="What its last start took">
      <Wide label="What the last start took">
        <table className="plain rescale-parts">
          <thead>
            <tr>
              <th scope="col">What took it</th>
              <th scope="col" className="numeric">
                Time
              </th>
              <th scope="col" aria-label="Share" />
            </tr>
          </thead>
          <tbody>
            {parts.map(({ key, words, seconds, share }) => (
              <tr key={key}>
                <td>{words}</td>
                <td className="numeric">{duration(seconds)}</td>
                <td className="part-bar">
                  <span style={{ width: `${share * 100}%` }} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
    </Card>
  );
}
