import { useState, type SyntheticEvent } from "react";

import type { Budget } from "../../api/types";
import { usdPerHour } from "../../format";
import { Card } from "../../parts/basics";
import { Confirm } from "../../parts/Dialog";
import { client } from "../../state/session";
import { amount } from "./scale";

interface CapProps {
  budget: number;
  cap: number | null;
}

/** The most that all nodes together may cost at any moment. */
export function Cap({ budget, cap }: CapProps) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const [asked, setAsked] = useState<{ cap: number | null } | null>(null);
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    const found = amount(text);
    setProblem(found === null ? "An amount above 0, such as 30." : "");
    if (found !== null) setAsked({ cap: found });
  };
  return (
    <Card title="Hard cap">
      <p className="faint">
        {cap === null
          ? "There is none: only the average is steered, and a burst of jobs may cost more for a while."
          : `All nodes together never cost more than ${usdPerHour(cap)}; jobs get fewer GPUs or wait instead.`}
      </p>
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
        <button type="submit">{cap === null ? "Set the cap" : "Change the cap"}</button>
        {cap !== null && (
          <button type="button" onClick={() => setAsked({ cap: null })}>
            Remove the cap
          </button>
        )}
        {problem && (
          <span id="cap-problem" className="field-problem" role="alert">
            {problem}
          </span>
        )}
      </form>
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

interface ConfirmCapProps {
  budget: number;
  before: number | null;
  after: number | null;
  close: () => void;
  done: () => void;
}

function ConfirmCap({ budget, before, after, close, done }: ConfirmCapProps) {
  const apply = async () => {
    await client.put<Budget>("/budget", { budget_per_hour: budget, max_spend_per_hour: after });
    done();
  };
  const title = after === null ? "Remove the hard cap?" : `Cap the spend at ${usdPerHour(after)}?`;
  return (
    <Confirm
      title={title}
      action={after === null ? "Remove the cap" : `Cap it at ${usdPerHour(after)}`}
      onConfirm={apply}
      onClose={close}
    >
      <ul className="what-happens">
        <li>
          The cap goes from <b>{before === null ? "none" : usdPerHour(before)}</b> to{" "}
          <b>{after === null ? "none" : usdPerHour(after)}</b>, at once.
        </li>
        {after === null ? (
          <li>A burst of jobs may then cost more than the budget for a while.</li>
        ) : (
          <li>
            No node is rented beyond it: jobs get fewer GPUs or wait. If more is rented now, the
            least used nodes go as soon as their jobs have moved.
          </li>
        )}
        {after !== null && after < budget && (
          <li className="warn">
            It is below the budget of {usdPerHour(budget)}, which then cannot be spent.
          </li>
        )}
        <li>The budget stays at {usdPerHour(budget)}; its average counts from now.</li>
      </ul>
    </Confirm>
  );
}
