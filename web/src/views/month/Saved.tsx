import { useState } from "react";

import { wordsOf } from "../../api/client";
import type { Saved as Answered } from "../../api/types";
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
  const answer = useAnswer<Answered>(`/saved?month=${name}`, 0, everyMs);
  const wanted = isActive(answer.data) ? EVERY_MS : 0;
  if (wanted !== everyMs) setEvery(wanted);
  return (
    <Card title="What BOA saved">
      <Shown answer={answer} what="what was saved">
        {(found) => (
          <>
            <Said saved={found} />
            {found.too_thin === "" && !isActive(found) && (
              <Asking saved={found} name={name} again={answer.again} isPresent={isPresent} />
            )}
          </>
        )}
      </Shown>
    </Card>
  );
}

function Said({ saved }: { saved: Answered }) {
  if (saved.result) {
    return (
      <>
        <p>{saved.result.words.join(" ")}</p>
        <details>
          <summary>All of this is simulated. What it takes to be so</summary>
          <ul className="small">
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
  name: string;
  again: () => void;
  isPresent: boolean;
}

/** A button, where asking would tell something new. */
function Asking({ saved, name, again, isPresent }: AskingProps) {
  const [problem, setProblem] = useState("");
  const [sent, setSent] = useState(false);
  if (saved.state === "done" && !isPresent) return null;
  const ask = () => {
    setProblem("");
    setSent(true);
    client
      .post("/saved", { month: name })
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
