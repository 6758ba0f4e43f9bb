import { useState } from "react";

import type { Frontier, Simulation, SimulationList, TraceChoices } from "../api/types";
import { Card, Empty, Loading, Problem, Progress, Shown } from "../parts/basics";
import { linkTo, useAnswer, usePicture, type Answer } from "../state/hooks";
import { usualBudget } from "./budget/money";
import { Ask } from "./what-if/Ask";
import { useResults } from "./what-if/hooks";
import { List } from "./what-if/List";
import { Result } from "./what-if/Result";
import "./what-if/what-if.css";

const EVERY_MS = 1500;
const SELDOM_MS = 15_000;
/** While nothing runs: somebody else may ask something. */

/** Other policies and budgets, simulated: which would have been faster for the same money. */
export function WhatIf({ rest }: { rest: string[] }) {
  const chosen = (rest[0] ?? "").split(",").filter(Boolean);
  const { connection, plan, budget } = usePicture();
  const choices = useAnswer<TraceChoices>("/what-if/traces", connection);
  const frontier = useAnswer<Frontier>(plan === null ? null : "/frontier", plan);
  const list = useSimulations();
  const choose = (ids: string[]) => {
    window.location.hash = linkTo("what-if", ...(ids.length > 0 ? [ids.join(",")] : []));
  };
  const asked = (simulation: Simulation) => {
    list.again();
    choose([simulation.id]);
  };
  return (
    <>
      <header>
        <h1>What if</h1>
        <p className="faint">
          Simulate how jobs would have fared under other policies and budgets. Nothing of it reaches
          the jobs that run.
        </p>
      </header>
      <div className="what-if">
        <Shown answer={choices} what="traces">
          {(found) => (
            <Ask
              choices={found}
              sensible={frontier.data}
              today={budget ? usualBudget(budget) : null}
              onAsked={asked}
            />
          )}
        </Shown>
        <div className="stack">
          <Shown answer={list} what="simulations">
            {(found) => (
              <>
                <List simulations={found} chosen={chosen} choose={choose} changed={list.again} />
                {chosen.length > 0 && <Chosen ids={chosen} simulations={found} />}
              </>
            )}
          </Shown>
        </div>
      </div>
    </>
  );
}

/** All of them, newest first; asked again and again while one is on its way. */
function useSimulations(): Answer<Simulation[]> {
  const [everyMs, setEvery] = useState(SELDOM_MS);
  const answer = useAnswer<SimulationList>("/what-if", 0, everyMs);
  const found = answer.data?.simulations ?? null;
  const wanted = found?.some(isActive) ? EVERY_MS : SELDOM_MS;
  if (wanted !== everyMs) setEvery(wanted);
  return { ...answer, data: found };
}

function isActive({ state }: Simulation): boolean {
  return state === "waiting" || state === "running";
}

function Chosen({ ids, simulations }: { ids: string[]; simulations: readonly Simulation[] }) {
  const known = simulations.filter((simulation) => ids.includes(simulation.id));
  const done = known.filter((simulation) => simulation.state === "done");
  const { finished, error } = useResults(
    done.map((simulation) => simulation.id),
    usePicture().connection === "live",
  );
  if (known.length === 0) {
    return (
      <Card>
        <Empty title="There is no such simulation">Choose another one above.</Empty>
      </Card>
    );
  }
  if (error) return <Problem error={error} />;
  if (finished.length > 0) return <Result finished={finished} />;
  if (done.length > 0) return <Loading what="the result" />;
  return known.map((simulation) => <Unfinished key={simulation.id} simulation={simulation} />);
}

/** Opened before there is anything to see. */
function Unfinished({ simulation }: { simulation: Simulation }) {
  const { id, state, points, points_done: done, error } = simulation;
  const words = {
    waiting: "It waits for the simulations before it.",
    running: `${done} of ${points} points are simulated; the result comes with the last.`,
    done: "",
    failed: error,
    stopped: "It was stopped before it was done; there is no result. Ask again to see one.",
  }[state];
  return (
    <Card title={`No. ${id} is ${state}`}>
      <p className={state === "failed" ? "bad" : "faint"} role="status">
        {words}
      </p>
      {isActive(simulation) && (
        <Progress done={points > 0 ? done / points : 0} label={`Simulation ${id}, opened`} />
      )}
    </Card>
  );
}
