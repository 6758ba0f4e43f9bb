import { useId, useState, type SyntheticEvent } from "react";

import { ApiError, wordsOf } from "../../api/client";
import type { Frontier, Preview } from "../../api/types";
import { duration, settableDigits, usdPerHour } from "../../format";
import { client } from "../../state/session";
import type { Previewing } from "./hooks";
import {
  amount,
  amountProblem,
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
  /** What is being typed as an amount; null: nothing is. */
  typed: string | null;
  onTyped: (text: string | null) => void;
}

/** Three ways to say the same: a slider, an amount, and a wished JCT. */
export function Controls(props: ControlsProps) {
  const { frontier, scale, tried, budget, preview, pick, typed, onTyped } = props;
  const id = useId();
  const jct = preview.data?.average_jct_s;
  const says = `${usdPerHour(tried)}${jct ? `: jobs take ${duration(jct)} on average` : ""}`;
  return (
    <div className="controls">
      <div className="controls-line">
        <label htmlFor={id}>Try a budget</label>
        <AmountField tried={tried} typed={typed} onTyped={onTyped} />
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

type AmountFieldProps = Pick<ControlsProps, "tried" | "typed" | "onTyped">;

/** Shows the slider's budget unless somebody is typing. What is no amount stays, with why. */
function AmountField({ tried, typed, onTyped }: AmountFieldProps) {
  const problem = typed === null ? "" : amountProblem(typed);
  const id = useId();
  return (
    <>
      <span className="with-unit">
        $
        <input
          type="text"
          inputMode="decimal"
          size={8}
          aria-label="Budget in USD per hour"
          aria-invalid={problem !== ""}
          aria-describedby={id}
          value={typed ?? tried.toFixed(settableDigits(tried))}
          onChange={(event) => onTyped(event.target.value)}
          onBlur={() => {
            if (!problem) onTyped(null);
          }}
        />
        /h
      </span>
      {problem && (
        <p id={id} className="field-problem" role="alert">
          {problem}
        </p>
      )}
    </>
  );
}

interface TargetFieldProps {
  frontier: Frontier;
  pick: (budget: number) => void;
}

/** The other way round: the least budget for a wished JCT. */
function TargetField({ frontier, pick }: TargetFieldProps) {
  const [text, setText] = useState("");
  const [chosen, setUnit] = useState<TimeUnit | null>(null);
  const { problem, setProblem, find } = useTarget(frontier, pick);
  const id = useId();
  const unit = chosen ?? unitFor(frontier.fastest_jct_s);
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    find(amount(text), unit);
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
        <UnitSelect unit={unit} setUnit={setUnit} />
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

/** Asks for the budget of a time, and keeps why there is none. */
function useTarget(frontier: Frontier, pick: (budget: number) => void) {
  const [problem, setProblem] = useState("");
  const find = (value: number | null, unit: TimeUnit) => {
    if (value === null) {
      setProblem("A time above 0, such as 25.");
      return;
    }
    client.get<Preview>(`/preview?jct_s=${encodeURIComponent(inSeconds(value, unit))}`).then(
      (found) => {
        setProblem("");
        pick(roundedUp(found.budget_per_hour));
      },
      (error: unknown) => setProblem(outOfReach(error, frontier)),
    );
  };
  return { problem, setProblem, find };
}

function UnitSelect({ unit, setUnit }: { unit: TimeUnit; setUnit: (unit: TimeUnit) => void }) {
  return (
    <select
      aria-label="Unit of the time"
      value={unit}
      onChange={(event) => setUnit(event.target.value as TimeUnit)}
    >
      <option value="s">seconds</option>
      <option value="min">minutes</option>
      <option value="h">hours</option>
    </select>
  );
}

/** The service says what there is in seconds; people read times. */
export function outOfReach(error: unknown, frontier: Frontier): string {
  if (error instanceof ApiError && error.field === "jct_s") {
    const fastest = duration(Math.ceil(frontier.fastest_jct_s));
    const slowest = frontier.points[0]?.average_jct_s ?? frontier.fastest_jct_s;
    return `Out of reach: the fastest plan takes ${fastest}, the cheapest ${duration(slowest)}.`;
  }
  return wordsOf(error);
}
