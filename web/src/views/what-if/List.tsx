import { useState } from "react";

import { wordsOf } from "../../api/client";
import type { Simulation } from "../../api/types";
import { ago, usd } from "../../format";
import { Card, Empty, Progress } from "../../parts/basics";
import { linkTo } from "../../state/hooks";
import { client } from "../../state/session";

interface ListProps {
  simulations: readonly Simulation[];
  /** Those that are looked at. */
  chosen: readonly string[];
  choose: (ids: string[]) => void;
  changed: () => void;
}

/** What was asked for, and how far it is. */
export function List({ simulations, chosen, choose, changed }: ListProps) {
  const toggle = (id: string) =>
    choose(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id]);
  if (simulations.length === 0) {
    return (
      <Card title="Simulations">
        <Empty title="None yet">
          Choose a trace, policies and budgets, and press “Simulate”: you will see here how far it
          is, and then what each policy makes of the same money.
        </Empty>
      </Card>
    );
  }
  return (
    <Card title="Simulations">
      <p className="faint small">Tick several to see them in one chart.</p>
      <ul className="simulations">
        {simulations.map((simulation) => (
          <Row
            key={simulation.id}
            simulation={simulation}
            chosen={chosen.includes(simulation.id)}
            toggle={() => toggle(simulation.id)}
            changed={changed}
          />
        ))}
      </ul>
    </Card>
  );
}

interface RowProps {
  simulation: Simulation;
  chosen: boolean;
  toggle: () => void;
  changed: () => void;
}

function Row({ simulation, chosen, toggle, changed }: RowProps) {
  const { id, state, trace, policies, budgets, gpu_types } = simulation;
  const active = state === "waiting" || state === "running";
  return (
    <li className={chosen ? "chosen" : ""}>
      <input
        type="checkbox"
        checked={chosen}
        disabled={state !== "done" && !chosen}
        aria-label={`Show simulation ${id}`}
        onChange={toggle}
      />
      <div className="simulation">
        <div className="row spread">
          <a href={linkTo("what-if", id)}>
            no. {id}: {trace} on {gpu_types.join(", ")}
          </a>
          <span className={`badge ${BADGES[state]}`}>{state}</span>
        </div>
        <div className="small faint">
          {policies.join(", ")} at {budgets.map((budget) => usd(budget)).join(", ")} per hour
          {calendarWords(simulation)}; asked {ago(simulation.asked_at)}
        </div>
        {active && <Active simulation={simulation} changed={changed} />}
        {simulation.error && <div className="small bad">{simulation.error}</div>}
      </div>
    </li>
  );
}

/** That it was by the hour, and whose hours. */
function calendarWords({ calendar }: Simulation): string {
  return calendar && calendar.length > 0 ? ` by the week’s hours (${calendar.join(", ")})` : "";
}

const BADGES = {
  waiting: "waiting",
  running: "starting",
  done: "succeeded",
  failed: "failed",
  stopped: "",
} as const;

function Active({ simulation, changed }: { simulation: Simulation; changed: () => void }) {
  const { id, points, points_done: done } = simulation;
  const [problem, setProblem] = useState("");
  const stop = () => {
    client
      .post(`/what-if/${encodeURIComponent(id)}/stop`)
      .then(changed, (error: unknown) => setProblem(wordsOf(error)));
  };
  return (
    <div className="row">
      <span className="simulation-progress">
        <Progress done={points > 0 ? done / points : 0} label={`Simulation ${id}`} />
      </span>
      <span className="small faint">
        {done} of {points} points
      </span>
      <button type="button" onClick={stop} aria-label={`Stop simulation ${id}`}>
        Stop
      </button>
      {problem && (
        <span className="field-problem" role="alert">
          {problem}
        </span>
      )}
    </div>
  );
}
