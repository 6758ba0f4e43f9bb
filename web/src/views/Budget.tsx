import { useCallback, useState } from "react";

import type { Budget as Money, Frontier } from "../api/types";
import { usdExactly } from "../format";
import { Card, Empty, Loading, Shown } from "../parts/basics";
import { linkTo, useAnswer, usePicture } from "../state/hooks";
import { noted, type Applied } from "./budget/applied";
import { Cap } from "./budget/Cap";
import { Headline, Stats } from "./budget/Stats";
import { periodOf, usualBudget } from "./budget/money";
import { Spend } from "./budget/Spend";
import { TradeOff } from "./budget/TradeOff";
import { Week } from "./budget/Week";
import { MoneyEvents } from "./events/MoneyEvents";
import { stretchWords } from "./teams/terms";
import { Shares, Tree } from "./teams/Tree";
import "./budget/budget.css";

/** Are we on budget, what runs, what would more money buy. */
export function Budget() {
  const { plan, budget, complete, connection } = usePicture();
  const connected = connection === "live";
  const frontier = useAnswer<Frontier>(plan === null ? null : "/frontier", plan);
  const [applied, setApplied] = useState<Applied | null>(null);
  const onApplied = useCallback(
    (to: number, before: number) => setApplied({ budget: to, before, seen: false, plan: null }),
    [],
  );
  const next = applied && budget ? noted(applied, usualBudget(budget), plan) : applied;
  if (next !== applied) setApplied(next);
  if (!budget) return <Loading what="the budget" />;
  return (
    <>
      <h1 className="unseen">Budget</h1>
      <Headline budget={budget} frontier={frontier.data} />
      {budget.stretch && <p className="note">{stretchWords(budget.stretch)}</p>}
      <Stats budget={budget} />
      {budget.calendar && <Week calendar={budget.calendar} />}
      <SharedBy budget={budget} />
      {applied && (
        <AppliedNote applied={applied} period={periodOf(budget)} close={() => setApplied(null)} />
      )}
      {plan === null ? (
        <NoPlan complete={complete} />
      ) : (
        <Shown answer={frontier} what="what money buys">
          {(found) => (
            <TradeOff
              frontier={found}
              plan={plan}
              connected={connected}
              budget={usualBudget(budget)}
              period={periodOf(budget)}
              now={budget.budget_per_hour}
              cap={budget.max_spend_per_hour}
              onApplied={onApplied}
            />
          )}
        </Shown>
      )}
      <Spend budget={budget.budget_per_hour} cap={budget.max_spend_per_hour} />
      <MoneyEvents />
      <Cap budget={usualBudget(budget)} cap={budget.max_spend_per_hour} />
    </>
  );
}

/** Where teams share it: who spends it, and what each has. */
function SharedBy({ budget }: { budget: Money }) {
  const parts = budget.parts ?? [];
  if (parts.length === 0) return null;
  return (
    <Card title="Who shares it" tools={<a href={linkTo("teams")}>More about teams</a>}>
      <Shares budget={budget} parts={parts} />
      <Tree parts={parts} label="Teams" />
    </Card>
  );
}

interface AppliedNoteProps {
  applied: Applied;
  period: string | null;
  close: () => void;
}

function AppliedNote({ applied, period, close }: AppliedNoteProps) {
  return (
    <div className="note good" role="status">
      <span>
        The budget is {usdExactly(applied.budget)}/h {period !== null && "on average over a week "}
        from now on.{" "}
        {applied.plan === null ? "Waiting for the new plan…" : `Plan ${applied.plan} follows it.`}
      </span>
      <button type="button" className="quiet" onClick={close} aria-label="Close this note">
        ✕
      </button>
    </div>
  );
}

function NoPlan({ complete }: { complete: boolean }) {
  if (!complete) return <Loading what="the plan" />;
  return (
    <Card title="What would more money buy?">
      <Empty title="Nothing is planned yet">
        <p>
          The service plans as soon as it knows a class of jobs: submit one with{" "}
          <code>boa submit job.yaml</code>.
        </p>
        <p>Then you see here how fast jobs are for every budget, and can try others.</p>
      </Empty>
    </Card>
  );
}
