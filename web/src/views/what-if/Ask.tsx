import { useState, type SyntheticEvent } from "react";

import type { Simulation, SimulationAnswer, TraceChoice, TraceChoices } from "../../api/types";
import { Card } from "../../parts/basics";
import { client } from "../../state/session";
import { PolicyField, TypesField } from "./Checks";
import { FieldProblem } from "./FieldProblem";
import { askable, firstPolicies } from "./policies";
import {
  bodyOf,
  firstBudgets,
  firstTypes,
  OWN,
  ownFirst,
  problemsOf,
  refusal,
  type Draft,
  type Problems,
  type Question,
  type Sensible,
} from "./question";
import { TraceField } from "./TraceField";

const COUNTED: Record<TraceChoices["billing"], string> = {
  node: "They count the bill, as this service’s does: whole nodes, from request to gone. Policies are held against BOA at the same bill.",
  gpu: "They count the GPUs that jobs hold, as this service’s does. Policies are held against BOA at the same spend.",
};

interface AskProps {
  choices: TraceChoices;
  /** Between which budgets the workload is; null: not known. */
  sensible: Sensible | null;
  /** The service's budget; null: not known yet. */
  today: number | null;
  onAsked: (simulation: Simulation) => void;
}

/** The form: a trace, policies, budgets, GPU types. */
export function Ask({ choices, sensible, today, onAsked }: AskProps) {
  const traces = ownFirst(choices.traces);
  const [draft, setDraft] = useState<Draft>(() => started(choices, traces[0]));
  const [problems, setProblems] = useState<Problems>({});
  const [working, setWorking] = useState(false);
  // A file's jobs are as those that are not one's own: what the service says of the last of them.
  const picked = traces.find((trace) => trace.name === draft.trace) ?? traces.at(-1);
  const budgets = draft.budgets ?? firstBudgets(picked, sensible, today);
  const question: Question = { ...draft, budgets };
  const change = (part: Partial<Draft>) => {
    setDraft((was) => ({ ...was, ...part }));
    setProblems({});
  };
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    const found = problemsOf(question);
    setProblems(found);
    if (Object.keys(found).length > 0) return;
    setWorking(true);
    client
      .post<SimulationAnswer>("/what-if", bodyOf(question))
      .then(
        ({ simulation }) => onAsked(simulation),
        (error: unknown) => setProblems(refusal(error, question.upload)),
      )
      .finally(() => setWorking(false));
  };
  return (
    <Card title="Ask">
      <form className="ask" onSubmit={submit} noValidate>
        <TraceField traces={traces} question={question} problem={problems.trace} change={change} />
        <PolicyField
          policies={choices.policy_choices}
          byCalendar={question.byCalendar}
          chosen={question.policies}
          problem={problems.policies}
          change={change}
        />
        <BudgetsField
          text={question.budgets}
          billing={choices.billing}
          problem={problems.budgets}
          change={change}
        />
        <CalendarField
          choices={choices}
          question={question}
          problem={problems.calendar}
          change={change}
        />
        <TypesField
          types={typesOf(traces, question)}
          chosen={question.gpuTypes}
          problem={problems.gpu_types}
          change={change}
        />
        <div className="row">
          <button type="submit" className="primary" disabled={working}>
            {working ? "Asking…" : "Simulate"}
          </button>
          <span className="faint small">
            Runs beside the service, one simulation after another. It rents nothing.
          </span>
        </div>
        <FieldProblem id="form-problem" problem={problems.form} />
      </form>
    </Card>
  );
}

function started(choices: TraceChoices, first: TraceChoice | undefined): Draft {
  const byCalendar = first?.name === OWN && periodsOf(choices).length > 0;
  const policies = firstPolicies(choices.policy_choices);
  return {
    trace: first?.name ?? null,
    upload: null,
    policies: policies.filter((one) => askable(choices.policy_choices, byCalendar).includes(one)),
    byCalendar,
    budgets: null,
    gpuTypes: firstTypes(first),
  };
}

/** An uploaded trace runs on what the catalogue knows, as the others do that are not one's own. */
function typesOf(traces: readonly TraceChoice[], question: Question): readonly string[] {
  const name = question.trace;
  const found = name === null ? traces.at(-1) : traces.find((trace) => trace.name === name);
  return found?.gpu_types ?? [];
}

interface BudgetsProps {
  text: string;
  billing: TraceChoices["billing"];
  problem: string | undefined;
  change: (part: Partial<Draft>) => void;
}

function BudgetsField({ text, billing, problem, change }: BudgetsProps) {
  return (
    <div className="ask-field">
      <label htmlFor="budgets">Budgets in USD per hour</label>
      <input
        id="budgets"
        type="text"
        value={text}
        placeholder="60, 87, 120"
        aria-invalid={problem !== undefined}
        aria-describedby="budgets-problem"
        onChange={(event) => change({ budgets: event.target.value })}
      />
      <span className="faint small">{COUNTED[billing]}</span>
      <FieldProblem id="budgets-problem" problem={problem} />
    </div>
  );
}

/** Of the calendar that the service's own budget follows. */
function periodsOf({ calendar }: TraceChoices): readonly string[] {
  return calendar ?? [];
}

interface CalendarProps {
  choices: TraceChoices;
  question: Question;
  problem: string | undefined;
  change: (part: Partial<Draft>) => void;
}

/** Whether budgets are the same at all hours, where the service's own is not. */
function CalendarField({ choices, question, problem, change }: CalendarProps) {
  const periods = periodsOf(choices);
  if (periods.length === 0) return null;
  const toggled = () => {
    const byCalendar = !question.byCalendar;
    const open = askable(choices.policy_choices, byCalendar);
    change({ byCalendar, policies: question.policies.filter((one) => open.includes(one)) });
  };
  return (
    <div className="ask-field">
      <label className="check">
        <input
          type="checkbox"
          checked={question.byCalendar}
          aria-describedby="calendar-about"
          onChange={toggled}
        />
        By this service’s calendar: {periods.join(", ")}
      </label>
      <span id="calendar-about" className="faint small">
        Each budget is then the average of a week, with more and less by the hour, and prices, as
        the service’s own; only policies that the service can run follow it.
        {question.trace === OWN
          ? " Jobs come at the hours at which they came."
          : " The trace begins on a Monday at midnight."}
      </span>
      <FieldProblem id="calendar-problem" problem={problem} />
    </div>
  );
}
