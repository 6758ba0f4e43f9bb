import { useState, type ReactNode } from "react";

import { duration, figure, moment, usd } from "../../format";
import { ApiError } from "../../api/client";
import { Card } from "../../parts/basics";
import { Confirm } from "../../parts/Dialog";
import { hasEnded } from "../../state/live";
import { client } from "../../state/session";
import type { SeenDetails } from "./Facts";
import { changesOf, tagText, type Tags, type Wishes } from "./jobChanges";
import { capital } from "./words";

type Fact = [name: string, value: ReactNode];

/** What each means for the job, and for others. */
const PRIORITIES: Readonly<Record<SeenDetails["priority"], string>> = {
  urgent:
    "a second of it counts several times as much: it gets more GPUs, sooner, and costs more; others have less",
  normal: "a second of it counts once",
  background:
    "nothing is rented for it: it runs on GPUs that are paid for and empty, whose cost is shown as its own, and makes room for others at once",
};

/** What the job starts after, may take and cost, and by when it is due. */
export function TermsCard({ job }: { job: SeenDetails }) {
  const [changing, setChanging] = useState(false);
  const facts = termsOf(job);
  const over = hasEnded(job.state);
  const change = !over && !job.stop_requested && (
    <button type="button" className="small" onClick={() => setChanging(true)}>
      Change
    </button>
  );
  if (facts.length === 0 && over) return null;
  return (
    <Card title="Terms" tools={change}>
      {facts.length === 0 ? (
        <p className="faint">No limits, no deadline.</p>
      ) : (
        <dl className="facts">
          {facts.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      )}
      {changing && <ChangeDialog job={job} onClose={() => setChanging(false)} />}
    </Card>
  );
}

function termsOf(job: SeenDetails): Fact[] {
  const spec = job.spec as Record<string, unknown>;
  const { max_cost: cost, max_time_s: time, may_wait_s: wait, key } = spec;
  const facts: Fact[] = [];
  if (job.priority !== "normal") {
    facts.push(["Priority", `${job.priority}: ${PRIORITIES[job.priority]}`]);
  }
  if (job.awaits.length > 0) facts.push(["Starts after", job.awaits.join(", ")]);
  if (typeof cost === "number") facts.push(["May cost", usd(cost)]);
  if (typeof time === "number") {
    facts.push(["May run", `${duration(time)} on GPUs; ${duration(job.ran_s)} so far`]);
  }
  if (job.waits_until !== null) facts.push(["Put off until", moment(job.waits_until)]);
  if (typeof wait === "number" && job.started_at === null) {
    facts.push(["May wait", wait === 0 ? "not at all" : `${duration(wait)} from its submission`]);
  }
  if (job.deadline !== null) facts.push(["Due", moment(job.deadline)]);
  if (job.urgency !== 1) facts.push(["Counts", `${figure(job.urgency)} × its class`]);
  const tags = tagText(tagsOf(job)).replaceAll("\n", ", ");
  if (tags) facts.push(["Charged to", tags]);
  if (typeof key === "string") facts.push(["Key", key]);
  for (const [name, value] of Object.entries(job.parameters)) facts.push([name, value]);
  return facts;
}

function ChangeDialog({ job, onClose }: { job: SeenDetails; onClose: () => void }) {
  const spec = job.spec as Record<string, unknown>;
  const [wishes, setWishes] = useState<Wishes>({
    priority: job.priority,
    weight: shown(spec.weight),
    max_gpus: shown((spec.gpus as Record<string, unknown> | undefined)?.max),
    max_cost: shown(spec.max_cost),
    tags: tagText(tagsOf(job)),
  });
  const [losing, setLosing] = useState(false);
  const confirm = async () => {
    const changes = changesOf(wishes, spec);
    if (Object.keys(changes).length === 0) return;
    const path = `/jobs/${encodeURIComponent(job.id)}${losing ? "?force=true" : ""}`;
    await client.patch(path, changes).catch((error: unknown) => {
      setLosing(error instanceof ApiError && error.status === 409);
      throw error;
    });
  };
  const fields: [keyof Wishes, string][] = [
    ...(wishes.priority === "normal" && job.priority === "normal"
      ? [["weight", "Weight"] satisfies [keyof Wishes, string]]
      : []),
    ["max_gpus", "Most GPUs"],
    ["max_cost", "May cost (USD; empty: any)"],
  ];
  return (
    <Confirm
      title={`Change job ${job.id} (${job.name})`}
      action={losing ? "Change it and lose the work" : "Change it"}
      onConfirm={confirm}
      onClose={onClose}
    >
      <p>It is in force at once: a job that may have fewer GPUs moves.</p>
      <label className="field">
        Priority
        <select
          value={wishes.priority}
          onChange={(event) => setWishes({ ...wishes, priority: event.target.value })}
        >
          {Object.keys(PRIORITIES).map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <p className="faint small" role="status">
        {capital(PRIORITIES[wishes.priority as SeenDetails["priority"]])}.
      </p>
      {fields.map(([name, label]) => (
        <label key={name} className="field">
          {label}
          <input
            type="number"
            min={0}
            value={wishes[name]}
            onChange={(event) => setWishes({ ...wishes, [name]: event.target.value })}
          />
        </label>
      ))}
      <label className="field">
        Tags, one in a line (project=cats; empty: none)
        <textarea
          rows={2}
          value={wishes.tags}
          onChange={(event) => setWishes({ ...wishes, tags: event.target.value })}
        />
      </label>
    </Confirm>
  );
}

function tagsOf(job: SeenDetails): Tags {
  return ((job.spec as Record<string, unknown>).tags ?? {}) as Tags;
}

function shown(value: unknown): string {
  return typeof value === "number" ? String(value) : "";
}

/** Pauses a job, or goes on with it. The picture shows it a moment later. */
export function PauseButton({ job }: { job: SeenDetails }) {
  const [problem, setProblem] = useState("");
  const [losing, setLosing] = useState("");
  const [working, setWorking] = useState(false);
  if (hasEnded(job.state) || job.stop_requested) return null;
  const ask = (force = false) =>
    client.post(
      `/jobs/${encodeURIComponent(job.id)}/${job.paused ? "resume" : "pause"}${force ? "?force=true" : ""}`,
    );
  const press = () => {
    setWorking(true);
    setProblem("");
    ask()
      .catch((error: unknown) => {
        const said = error instanceof Error ? error.message : "no answer";
        if (error instanceof ApiError && error.status === 409) setLosing(said);
        else setProblem(said);
      })
      .finally(() => setWorking(false));
  };
  return (
    <>
      {losing && (
        <Confirm
          title={`Pause job ${job.id} (${job.name}) and lose work?`}
          action="Pause it and lose the work"
          onConfirm={async () => {
            await ask(true);
          }}
          onClose={() => setLosing("")}
        >
          <p>{losing.replace(/; to pause all the same:.*$/u, ".")}</p>
        </Confirm>
      )}
      {problem && (
        <span className="field-problem" role="alert">
          {problem}
        </span>
      )}
      <button type="button" disabled={working} onClick={press}>
        {job.paused ? "Resume" : "Pause"}
      </button>
    </>
  );
}
