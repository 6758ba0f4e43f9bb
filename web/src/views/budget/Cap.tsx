import { useState, type SyntheticEvent } from "react";

import type { Budget } from "../../api/types";
import { settable, usdExactly, usdPerHour } from "../../format";
import { Card } from "../../parts/basics";
import { Confirm } from "../../parts/Dialog";
import { client } from "../../state/session";
import { useMaySpend } from "../../state/who";
import { amount, amountProblem } from "./scale";

interface CapProps {
  budget: number;
  cap: number | null;
}

/** The most that all nodes together may cost at any moment. */
export function Cap({ budget, cap }: CapProps) {
  const may = useMaySpend();
  const [text, setText] = useState("");
  const [asked, setAsked] = useState<{ cap: number | null } | null>(null);
  return (
    <Card title="Hard cap">
      <p className="faint">
        {cap === null
          ? "There is none: only the average is steered, and a burst of jobs may cost more for a while."
          : `All nodes together never cost more than ${perHour(cap)}; jobs get fewer GPUs or wait instead.`}
      </p>
      {may && (
        <CapForm cap={cap} text={text} setText={setText} ask={(to) => setAsked({ cap: to })} />
      )}
      {asked && (
        <ConfirmCap
          budget={budget}
          before={cap}
          after={asked.cap}
          close={() => setAsked(null)}
          done={() => setText("")}
        />
      )}
    </Card>
  );
}

interface CapFormProps {
  cap: number | null;
  text: string;
  setText: (text: string) => void;
  /** Of another cap, or null for none. */
  ask: (cap: number | null) => void;
}

function CapForm({ cap, text, setText, ask }: CapFormProps) {
  const problem = text.trim() === "" ? "" : amountProblem(text);
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    const found = amount(text);
    if (found !== null) ask(settable(found));
  };
  return (
    <form className="row" onSubmit={submit}>
      <label htmlFor="cap">Never more than</label>
      <span className="with-unit">
        $
        <input
          id="cap"
          type="text"
          inputMode="decimal"
          size={8}
          value={text}
          placeholder={cap === null ? "" : String(cap)}
          aria-invalid={problem !== ""}
          aria-describedby="cap-problem"
          onChange={(event) => setText(event.target.value)}
        />
        /h
      </span>
      <button type="submit" disabled={amount(text) === null}>
        {cap === null ? "Set the cap" : "Change the cap"}
      </button>
      {cap !== null && (
        <button type="button" onClick={() => ask(null)}>
          Remove the cap
        </button>
      )}
      {problem && (
        <span id="cap-problem" className="field-problem" role="alert">
          {problem}
        </span>
      )}
    </form>
  );
}

interface ConfirmCapProps {
  budget: number;
  before: number | null;
  after: number | null;
  close: () => void;
  done: () => void;
}

function ConfirmCap({ budget, before, after, close, done }: ConfirmCapProps) {
  const apply = async () => {
    await client.put<Budget>("/budget", { max_spend_per_hour: after });
    done();
  };
  const title = after === null ? "Remove the hard cap?" : `Cap the spend at ${perHour(after)}?`;
  return (
    <Confirm
      title={title}
      action={after === null ? "Remove the cap" : `Cap it at ${perHour(after)}`}
      onConfirm={apply}
      onClose={close}
    >
      <ul className="what-happens">
        <li>
          The cap goes from <b>{perHour(before)}</b> to <b>{perHour(after)}</b>, at once.
        </li>
        <li>
          {after === null
            ? "A burst of jobs may then cost more than the budget for a while."
            : "No node is rented beyond it: jobs get fewer GPUs or wait. If more is rented now, the least used nodes go as soon as their jobs have moved."}
        </li>
        {after !== null && after < budget && (
          <li className="warn">
            It is below the budget of {usdPerHour(budget)}, which then cannot be spent.
          </li>
        )}
        <li>
          The budget of {usdPerHour(budget)} stays as it is, and so does the average that is steered
          to.
        </li>
      </ul>
    </Confirm>
  );
}

/** What is sent, to the last digit. */
function perHour(cap: number | null): string {
  return cap === null ? "none" : `${usdExactly(cap)}/h`;
}
