import { useState, type SyntheticEvent } from "react";

import { wordsOf } from "../../api/client";
import type {
  ClassDocument,
  DisplacedJob,
  EstimateAnswer,
  EstimateRange,
  EstimateStage,
  JobEstimate,
} from "../../api/types";
import { duration, gpus, moment, plural, usd } from "../../format";
import { Card, Stat } from "../../parts/basics";
import { linkTo } from "../../state/hooks";
import { client } from "../../state/session";
import { Wide } from "../../parts/Wide";

/** What a job of the class would take, before anybody submits one. */
export function Estimate({ known }: { known: ClassDocument }) {
  const [most, setMost] = useState(String(known.gpus.max));
  const [work, setWork] = useState("");
  const [found, setFound] = useState<JobEstimate | null>(null);
  const [problem, setProblem] = useState("");
  const [asking, setAsking] = useState(false);
  const ask = (event: SyntheticEvent) => {
    event.preventDefault();
    setAsking(true);
    setProblem("");
    client
      .post<EstimateAnswer>("/jobs/estimate", bodyOf(known, most, work))
      .then(
        ({ estimate }) => setFound(estimate),
        (error: unknown) => setProblem(wordsOf(error)),
      )
      .finally(() => setAsking(false));
  };
  return (
    <Card title="What would a job take?">
      <form className="row" onSubmit={ask} noValidate>
        <label>
          At most{" "}
          <input
            inputMode="numeric"
            size={5}
            value={most}
            aria-label="Most GPUs"
            onChange={(event) => setMost(event.target.value)}
          />{" "}
          GPUs
        </label>
        <label>
          Total work{" "}
          <input
            inputMode="decimal"
            size={10}
            value={work}
            placeholder="as usual"
            aria-label="Total work"
            onChange={(event) => setWork(event.target.value)}
          />
        </label>
        <button type="submit" disabled={asking}>
          {asking ? "Asking…" : "Estimate"}
        </button>
        <span className="faint small">Nothing is submitted.</span>
      </form>
      {problem && (
        <p className="bad" role="alert">
          {problem}
        </p>
      )}
      {found && <Found found={found} />}
    </Card>
  );
}

/** As the class's newest job was, but for what was typed. Words that are no numbers are sent as
 * they are: the service says what it would take. */
export function bodyOf(known: ClassDocument, most: string, work: string): unknown {
  const { min, types } = known.gpus;
  const number = (text: string) => (Number.isFinite(Number(text)) ? Number(text) : text);
  return {
    class: known.class,
    run: "true",
    epochs: known.epochs,
    weight: known.weight,
    gpus: { min, max: number(most), ...(types.length > 0 && { types }) },
    ...(work.trim() !== "" && { total_work: number(work) }),
  };
}

function Found({ found }: { found: JobEstimate }) {
  return (
    <div className="stack" role="status">
      <p>{inUnits(found.words)}</p>
      {found.time_s !== null && found.cost_usd !== null && (
        <div className="stats">
          <Stat
            label="Time"
            value={duration(found.time_s)}
            note={between(found.time_range, duration)}
          />
          {found.jct_s !== null && found.put_off === null && (
            <Stat
              label="Ends after its submission"
              value={duration(found.jct_s)}
              note={between(found.jct_range, duration)}
            />
          )}
          <Stat label="Cost" value={usd(found.cost_usd)} note={between(found.cost_range, usd)} />
          <Stat label="Starts" value={startWords(found)} note={<Waiting found={found} />} />
          <Stat label="Known from" value={basisText(found)} note={basisNote(found)} />
        </div>
      )}
      {found.displaces.length > 0 && <Displaced jobs={found.displaces} />}
      {found.ways.length > 0 && <Ways found={found} />}
      {found.priorities.length > 0 && <Priorities found={found} />}
    </div>
  );
}

function between(range: EstimateRange | null, worded: (value: number) => string): string {
  if (!range) return "too few have ended to tell how far they lie apart";
  return `four of five between ${worded(range.low)} and ${worded(range.high)}`;
}

function startWords({ before, put_off: putOff }: JobEstimate): string {
  if (putOff) return putOff.until === null ? "nobody knows" : moment(putOff.until);
  const wait = before?.wait_s ?? null;
  if (wait === null) return "nobody knows";
  return wait <= 0 ? "at once" : `in ${duration(wait)}`;
}

/** What it waits for: other hours, or those before it, with a link to each of the first. */
function Waiting({ found: { before, put_off: putOff } }: { found: JobEstimate }) {
  if (putOff) return `it ${inUnits(putOff.why)}`;
  if (!before || before.waiting === 0) {
    const boots = before && before.boot_s > 0;
    return boots ? `a node boots for ${duration(before.boot_s)}` : "nobody waits before it";
  }
  const more = before.waiting - before.jobs.length;
  return (
    <>
      {plural(before.waiting, "job waits", "jobs wait")} before it for {plural(before.gpus, "GPU")}:{" "}
      {before.jobs.map((job, n) => (
        <span key={job}>
          {n > 0 && ", "}
          <a href={linkTo("jobs", job)}>{job}</a>
        </span>
      ))}
      {more > 0 && ` and ${more} more`}
    </>
  );
}

/** What the figures are taken from. */
function basisText({ basis, succeeded }: JobEstimate): string {
  if (basis === "jobs") return plural(succeeded, "job");
  return basis === "profile" ? "a profile" : "reports so far";
}

function basisNote({ basis, plan, spread_jobs: spread }: JobEstimate): string {
  const from =
    basis === "jobs"
      ? `that succeeded${spread > 0 ? `; the range is that of ${plural(spread, "job")}` : ""}`
      : basis === "profile"
        ? "which no job has shown yet"
        : "of jobs under way";
  const widths = plan === null ? "on the fewest GPUs: no plan knows it" : `GPUs as in plan ${plan}`;
  return `${from}; ${widths}`;
}

/** Running jobs that would give up GPUs for it, and what their stops cost. */
function Displaced({ jobs }: { jobs: DisplacedJob[] }) {
  return (
    <p>
      Costs others:{" "}
      {jobs.map((one, n) => (
        <span key={one.job}>
          {n > 0 && "; "}
          <a href={linkTo("jobs", one.job)}>job {one.job}</a> gives up {plural(one.gpus, "GPU")}{" "}
          {one.preempted && "and waits "}({duration(one.seconds)}
          {one.lost_s > 0 && `, ${duration(one.lost_s)} of it lost work`}, {usd(one.cost_usd)})
        </span>
      ))}
    </p>
  );
}

function Ways({ found }: { found: JobEstimate }) {
  const several = found.ways.length > 1;
  return (
    <Wide label="GPUs by epoch">
      <table className="plain">
        <thead>
          <tr>
            <th scope="col">Epochs</th>
            <th scope="col">GPUs</th>
            <th scope="col" className="numeric">
              Time
            </th>
            <th scope="col" className="numeric">
              Cost
            </th>
          </tr>
        </thead>
        <tbody>
          {found.ways.flatMap((way, number) =>
            way.stages.map((stage) => (
              <tr key={`${number} ${stage.first_epoch}`}>
                <th scope="row">
                  {epochsText(stage)}
                  {several && (
                    <span className="faint"> · {Math.round(100 * way.share)} % of jobs</span>
                  )}
                </th>
                <td>{gpus(stage.width, stage.gpu_type)}</td>
                <td className="numeric">{duration(stage.time_s)}</td>
                <td className="numeric">{usd(stage.cost_usd)}</td>
              </tr>
            )),
          )}
        </tbody>
      </table>
    </Wide>
  );
}

/** What each priority would cost the job, and what it would cost all others. */
function Priorities({ found }: { found: JobEstimate }) {
  return (
    <Wide label="What each priority costs">
      <table className="plain" aria-label="What each priority costs">
        <thead>
          <tr>
            <th scope="col">Priority</th>
            {["It takes", "It costs", "All others end later by"].map((head) => (
              <th key={head} scope="col" className="numeric">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {found.priorities.map((one) => (
            <tr key={one.priority}>
              <th scope="row">{one.priority}</th>
              <td className="numeric">
                {one.jct_s === null ? "as GPUs are empty" : duration(one.jct_s)}
              </td>
              <td className="numeric">{usd(one.cost_usd)}</td>
              <td className="numeric">{one.others_s > 0 ? duration(one.others_s) : "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="faint small">Together, with the budget as it is.</p>
    </Wide>
  );
}

/** Counted from 1, as people do. */
function epochsText({ first_epoch: first, last_epoch: last }: EstimateStage): string {
  return first === last ? `${first + 1}` : `${first + 1}–${last + 1}`;
}

/** The service's words with times as the figures beside them have them: it says all in seconds. */
function inUnits(words: string): string {
  return words.replace(/\b([\d,]+) s\b/g, (_, count: string) =>
    duration(Number(count.replaceAll(",", ""))),
  );
}
