import { useState } from "react";

import { wordsOf } from "../../api/client";
import type { Saved as Answered, SavedQuestion } from "../../api/types";
import { plural } from "../../format";
import { Card, Shown } from "../../parts/basics";
import { useAnswer } from "../../state/hooks";
import { client } from "../../state/session";

const EVERY_MS = 2000;

/** Whether a simulation is on its way. */
function isActive(saved: Answered | null): boolean {
  return saved?.state === "waiting" || saved?.state === "running";
}

/** What BOA saved in a month against fixed widths: simulated, and only when somebody asks. */
export function Saved({ name, isPresent }: { name: string; isPresent: boolean }) {
  const [everyMs, setEvery] = useState(0);
  const [before, setBefore] = useState<Before>({ width: "", gpu: "" });
  const question = questionOf(name, before);
  const usual = useAnswer<Answered>(`/saved?month=${name}`).data;
  const answer = useAnswer<Answered>(`/saved?${asQuery(question)}`, 0, everyMs);
  const wanted = isActive(answer.data) ? EVERY_MS : 0;
  if (wanted !== everyMs) setEvery(wanted);
  return (
    <Card title="What BOA saved">
      {usual?.too_thin === "" && (
        <BeforeForm types={usual.gpu_types ?? []} before={before} setBefore={setBefore} />
      )}
      <Shown answer={answer} what="what was saved">
        {(found) => (
          <>
            <Said saved={found} />
            {found.too_thin === "" && !isActive(found) && (
              <Asking
                saved={found}
                question={question}
                again={answer.again}
                isPresent={isPresent}
              />
            )}
          </>
        )}
      </Shown>
    </Card>
  );
}

/** What people are taken to have done before, as typed; empty: the fewest GPUs, the first type. */
interface Before {
  width: string;
  gpu: string;
}

/** What the service is asked, of a width that is none without it. */
function questionOf(month: string, { width, gpu }: Before): SavedQuestion {
  const gpus = Number(width);
  return {
    month,
    ...(Number.isInteger(gpus) && gpus > 0 && { width: gpus }),
    ...(gpu && { gpu_type: gpu }),
  };
}

function asQuery(question: SavedQuestion): string {
  return new URLSearchParams(
    Object.entries(question).map(([key, of]) => [key, String(of)]),
  ).toString();
}

interface BeforeProps {
  types: readonly string[];
  before: Before;
  setBefore: (before: Before) => void;
}

function BeforeForm({ types, before, setBefore }: BeforeProps) {
  return (
    <div className="row">
      <label className="with-unit">
        Against jobs on
        <input
          type="number"
          min={1}
          step={1}
          placeholder="fewest"
          className="saved-width"
          aria-label="GPUs of every job before"
          value={before.width}
          onChange={(event) => setBefore({ ...before, width: event.target.value })}
        />
        GPUs each,
      </label>
      <label className="with-unit">
        of
        <select
          aria-label="GPU type of jobs before"
          value={before.gpu}
          onChange={(event) => setBefore({ ...before, gpu: event.target.value })}
        >
          <option value="">the first type that they run on</option>
          {types.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
    </div>
  );
}

/** "bert on 4 × T4, cnn on 2 × T4" */
function widthWords({ widths }: Answered): string {
  return Object.entries(widths)
    .map(([name, gpus]) => `${name} on ${gpus}`)
    .join(", ");
}

function Said({ saved }: { saved: Answered }) {
  if (saved.result) {
    return (
      <>
        <p>{saved.result.words.join(" ")}</p>
        <details>
          <summary>All of this is simulated. What it takes to be so</summary>
          <ul className="small">
            {widthWords(saved) && <li>Before: {widthWords(saved)}.</li>}
            {saved.assumes.map((each) => (
              <li key={each}>{each}</li>
            ))}
          </ul>
        </details>
      </>
    );
  }
  return (
    <p className={saved.state === "failed" ? "bad" : "faint"} role="status">
      {notYet(saved)}
    </p>
  );
}

/** Why there are no figures. */
function notYet({ state, too_thin: thin, error, jobs }: Answered): string {
  if (thin) return `Nothing can be said yet: ${thin}.`;
  if (state === "waiting") return "It waits for the simulations before it.";
  if (state === "running") return "It is being simulated; the figures come by themselves.";
  if (state === "failed") return `The simulation failed: ${error}`;
  if (state === "stopped") return "The simulation was stopped before it was done.";
  return `Nobody has asked yet. The ${plural(jobs, "job")} that ended in the month can be simulated as people ran them before, on fixed numbers of GPUs, and under BOA at several budgets. It takes some seconds or minutes, in the background.`;
}

interface AskingProps {
  saved: Answered;
  question: SavedQuestion;
  again: () => void;
  isPresent: boolean;
}

/** A button, where asking would tell something new. */
function Asking({ saved, question, again, isPresent }: AskingProps) {
  const [problem, setProblem] = useState("");
  const [sent, setSent] = useState(false);
  if (saved.state === "done" && !isPresent) return null;
  const ask = () => {
    setProblem("");
    setSent(true);
    client
      .post("/saved", question)
      .then(again, (error: unknown) => setProblem(wordsOf(error)))
      .finally(() => setSent(false));
  };
  return (
    <div className="row">
      <button type="button" disabled={sent} onClick={ask}>
        {saved.state === "none" ? "Simulate it" : "Simulate it again"}
      </button>
      {problem && (
        <span className="field-problem" role="alert">
          {problem}
        </span>
      )}
    </div>
  );
}
