import { useId, useState, type SyntheticEvent } from "react";

import { ApiError } from "../../api/client";
import type { Frontier, Preview } from "../../api/types";
import { duration, usd } from "../../format";
import { client } from "../../state/session";
import type { Previewing } from "./hooks";
import {
  amount,
  budgetAt,
  inSeconds,
  roundedUp,
  stepOf,
  STEPS,
  unitFor,
  type BudgetScale,
  type TimeUnit,
} from "./scale";

interface ControlsProps {
  frontier: Frontier;
  scale: BudgetScale;
  tried: number;
  budget: number;
  preview: Previewing;
  pick: (budget: number) => void;
}

/** Three ways to say the same: a slider, an amount, and a wished JCT. */
export function Controls(props: ControlsProps) {
  const { frontier, scale, tried, budget, preview, pick } = props;
  const id = useId();
  const jct = preview.data?.average_jct_s;
  const says = `${usd(tried)} per hour${jct ? `: jobs take ${duration(jct)} on average` : ""}`;
  return (
    <div className="controls">
      <div className="controls-line">
        <label htmlFor={id}>Try a budget</label>
        <AmountField tried={tried} pick={pick} />
      </div>
      <input
        id={id}
        type="range"
        min={0}
        max={STEPS}
        value={stepOf(scale, tried)}
        aria-valuetext={says}
        onChange={(event) => pick(budgetAt(scale, Number(event.target.value)))}
      />
      <div className="controls-ends" aria-hidden="true">
        <span>cheaper, slower</span>
        <span>dearer, faster</span>
      </div>
      <TargetField key={budget} frontier={frontier} pick={pick} />
    </div>
  );
}

/** Shows the slider's budget unless somebody is typing. */
function AmountField({ tried, pick }: { tried: number; pick: (budget: number) => void }) {
  const [typed, setTyped] = useState<string | null>(null);
  const wrong = typed !== null && amount(typed) === null;
  const change = (text: string) => {
    setTyped(text);
    const found = amount(text);
    if (found !== null) pick(found);
  };
  return (
    <span className="with-unit">
      $
      <input
        type="text"
        inputMode="decimal"
        size={8}
        aria-label="Budget in USD per hour"
        aria-invalid={wrong}
        title={wrong ? "An amount above 0, such as 14.50" : undefined}
        value={typed ?? tried.toFixed(tried < 1 ? 4 : 2)}
        onChange={(event) => change(event.target.value)}
        onBlur={() => setTyped(null)}
      />
      /h
    </span>
  );
}

/** The other way round: the least budget for a wished JCT. */
function TargetField({ frontier, pick }: { frontier: Frontier; pick: (budget: number) => void }) {
  const [text, setText] = useState("");
  const [chosen, setUnit] = useState<TimeUnit | null>(null);
  const [problem, setProblem] = useState("");
  const id = useId();
  const unit = chosen ?? unitFor(frontier.fastest_jct_s);
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    const value = amount(text);
    if (value === null) {
      setProblem("A time above 0, such as 25.");
      return;
    }
    client.get<Preview>(`/preview?jct_s=${inSeconds(value, unit)}`).then(
      (found) => {
        setProblem("");
        pick(roundedUp(found.budget_per_hour));
      },
      (error: unknown) => setProblem(outOfReach(error, frontier)),
    );
  };
  return (
    <form className="controls-line" onSubmit={submit}>
      <label htmlFor={id}>I want jobs to take</label>
      <span className="with-unit">
        <input
          id={id}
          type="text"
          inputMode="decimal"
          size={5}
          value={text}
          aria-invalid={problem !== ""}
          aria-describedby={`${id}-problem`}
          onChange={(event) => {
            setText(event.target.value);
            setProblem("");
          }}
        />
        <select
          aria-label="Unit of the time"
          value={unit}
          onChange={(event) => setUnit(event.target.value as TimeUnit)}
        >
          <option value="s">seconds</option>
          <option value="min">minutes</option>
          <option value="h">hours</option>
        </select>
        on average
        <button type="submit">Find the budget</button>
      </span>
      {problem && (
        <p id={`${id}-problem`} className="field-problem" role="alert">
          {problem}
        </p>
      )}
    </form>
  );
}

/** The service says what there is in seconds; people read times. */
export function outOfReach(error: unknown, frontier: Frontier): string {
  if (error instanceof ApiError && error.field === "jct_s") {
    const fastest = duration(Math.ceil(frontier.fastest_jct_s));
    const slowest = frontier.points[0]?.average_jct_s ?? frontier.fastest_jct_s;
    return `Out of reach: the fastest plan takes ${fastest}, the cheapest ${duration(slowest)}.`;
  }
  return error instanceof Error ? error.message : String(error);
}
