import type { Budget, LivePlan, Plan } from "../../api/types";
import { duration, gpus, plural, trimmed, usd, usdPerHour } from "../../format";
import { Card, Empty, Stat, StateBadge } from "../../parts/basics";
import { Wide } from "../../parts/Wide";
import { linkTo, useAnswer, usePicture } from "../../state/hooks";
import type { SeenJob } from "../../state/live";
import { classOf } from "../../streams";
import { ofPlan } from "../classes/model";
import { plannedWords } from "../planned";
import {
  capital,
  loanText,
  loanWords,
  paysFor,
  same,
  spendWords,
  streamsWithin,
  withinTeam,
  type Part,
} from "./model";
import { termsOf } from "./terms";
import { Tree } from "./Tree";

interface PageProps {
  name: string;
  budget: Budget;
  parts: readonly Part[];
}

/** Everything about one of those who share the budget. */
export function Page({ name, parts }: PageProps) {
  const { plan: number } = usePicture();
  const plan = useAnswer<LivePlan>(number === null ? null : "/plan", number).data?.plan ?? null;
  const mine = parts.find((part) => part.name === name);
  const inside = withinTeam(parts, name);
  const planned = plan?.classes.map((one) => one.name) ?? [];
  return (
    <>
      <p>
        <a href={linkTo("teams")}>← All teams</a>
      </p>
      <h1>{name}</h1>
      {mine ? (
        <>
          <Standing part={mine} />
          <Figures part={mine} />
          <Terms part={mine} />
          <Card title="What it has">
            <Tree
              parts={inside}
              among={parts}
              label={inside.length > 1 ? "It and its parts" : "It"}
            />
          </Card>
          <UnderThePlan name={name} plan={plan} />
          <Classes classes={streamsWithin(parts, name, planned)} plan={plan} />
          <Running name={name} parts={parts} />
        </>
      ) : (
        <Card>
          <Empty title={`Nobody named “${name}” shares this budget`}>
            <a href={linkTo("teams")}>See who does</a>
          </Empty>
        </Card>
      )}
    </>
  );
}

function Standing({ part }: { part: Part }) {
  const { above } = part;
  return (
    <p>
      {capital(spendWords(part))}.{loanWords(part) && ` ${capital(loanWords(part))}.`}
      {above !== null && (
        <>
          {" "}
          A part of <a href={linkTo("teams", above)}>{above}</a>.
        </>
      )}
    </p>
  );
}

function Figures({ part }: { part: Part }) {
  const { budget_per_hour: right, right_now_per_hour: now, max_per_hour: most } = part;
  const moved = !same(now, right);
  return (
    <div className="stats">
      <Stat
        label="Spends now"
        value={usdPerHour(part.spend_now_per_hour)}
        note="what its jobs hold, and as much of what is idle or boots"
      />
      <Stat
        label="Guaranteed"
        value={usdPerHour(right)}
        note={moved ? `${usdPerHour(now)} until loans are paid back` : "whenever it wants it"}
      />
      <Stat
        label="At most"
        value={most === null ? "what there is" : usdPerHour(most)}
        note={most === null ? "it has no ceiling" : "on average, with what others leave"}
      />
      <Stat label="Loan" value={loanText(part)} note={loanNote(part)} />
    </div>
  );
}

/** Money for a time, its hard cap, and whether it borrows, where these are its own. */
function Terms({ part }: { part: Part }) {
  const terms = termsOf(part);
  if (terms.length === 0) return null;
  return (
    <Card title="Its terms">
      <ul className="team-terms">
        {terms.map((words) => (
          <li key={words}>{words}</li>
        ))}
      </ul>
    </Card>
  );
}

function loanNote({ lent_usd: lent, lends }: Part): string {
  if (lent > 0 && lends) return "others had it; it comes back within a day";
  if (lent > 0) return "left unspent; more is guaranteed for a day";
  if (lent < 0) return "it had more than its guarantee, and gives it back";
  return lends ? "what it does not want, others may have" : "it lends nothing";
}

/** What sharing does for it, by the plan in force. */
function UnderThePlan({ name, plan }: { name: string; plan: Plan | null }) {
  const mine = plan?.budgets?.find((one) => one.name === name);
  const here = mine?.average_jct_s ?? null;
  if (!mine || here === null) return null;
  const { alone_jct_s: alone, wanted_per_hour: wanted } = mine;
  const times = alone === null ? 1 : alone / here;
  return (
    <Card title="What the plan does for it">
      <p>
        Its jobs are to take {duration(here)} on average, from submission to end.{" "}
        {alone === null && "On its own money alone it could not keep up with them."}
        {alone !== null &&
          (times > 1.01
            ? `On its own money alone they would take ${duration(alone)}: ${trimmed(times, 2)} times as long.`
            : "On its own money alone they would take as long.")}{" "}
        It is planned to spend {usdPerHour(mine.spend_per_hour)} on average; more than{" "}
        {usdPerHour(wanted)} would buy it nothing.
      </p>
    </Card>
  );
}

function Classes({ classes, plan }: { classes: readonly string[]; plan: Plan | null }) {
  if (classes.length === 0) return null;
  return (
    <Card title="Classes it pays for">
      <Wide label="Classes">
        <table className="plain">
          <thead>
            <tr>
              <th scope="col">Class</th>
              <th scope="col">Planned GPUs</th>
              <th scope="col" className="numeric">
                Mean JCT
              </th>
              <th scope="col" className="numeric">
                Cost per job
              </th>
            </tr>
          </thead>
          <tbody>
            {classes.map((name) => {
              const planned = ofPlan(plan, name);
              return (
                <tr key={name}>
                  <th scope="row">
                    <a href={linkTo("classes", classOf(name))}>{classOf(name)}</a>
                  </th>
                  <td>{plannedWords(planned)}</td>
                  <td className="numeric">{planned ? duration(planned.average_jct_s) : "–"}</td>
                  <td className="numeric">{planned ? usd(planned.cost_per_job) : "–"}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </Wide>
    </Card>
  );
}

const MOST_JOBS = 20;

function Running({ name, parts }: { name: string; parts: readonly Part[] }) {
  const { jobs } = usePicture();
  const mine = [...jobs.values()].filter((job) => paysFor(parts, name, job));
  mine.sort((one, other) => other.width - one.width || Number(one.id) - Number(other.id));
  return (
    <Card title="Its jobs now">
      {mine.length === 0 ? (
        <p className="faint">None is active.</p>
      ) : (
        <Wide label="Its jobs now">
          <table className="plain">
            <thead>
              <tr>
                <th scope="col">Job</th>
                <th scope="col">State</th>
                <th scope="col">GPUs</th>
                <th scope="col" className="numeric">
                  Cost so far
                </th>
              </tr>
            </thead>
            <tbody>
              {mine.slice(0, MOST_JOBS).map((job) => (
                <JobLine key={job.id} job={job} />
              ))}
            </tbody>
          </table>
        </Wide>
      )}
      {mine.length > MOST_JOBS && (
        <p className="faint">
          And {plural(mine.length - MOST_JOBS, "more")}, under <a href={linkTo("jobs")}>Jobs</a>.
        </p>
      )}
    </Card>
  );
}

function JobLine({ job }: { job: SeenJob }) {
  return (
    <tr>
      <th scope="row">
        <a href={linkTo("jobs", job.id)}>{job.name}</a>
      </th>
      <td>
        <StateBadge state={job.state} />
      </td>
      <td>{gpus(job.width, job.gpu_type)}</td>
      <td className="numeric">{usd(job.cost_usd)}</td>
    </tr>
  );
}
