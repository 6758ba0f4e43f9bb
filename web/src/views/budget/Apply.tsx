import { useState } from "react";

import type { Budget, Preview } from "../../api/types";
import { change, duration, plural, settable, usdExactly, usdPerHour } from "../../format";
import { Confirm } from "../../parts/Dialog";
import { client } from "../../state/session";
import { useMaySpend } from "../../state/who";
import { shortWords } from "./money";
import { differs } from "./widths";

interface ApplyProps {
  tried: number;
  budget: number;
  /** The calendar's period that holds, null without one, and the budget of this hour. */
  period: string | null;
  now: number;
  /** What plans for it would be made with, where that is not the budget, in words. */
  billed: string;
  cap: number | null;
  /** Of the budget that is tried; null: it is not there yet. */
  preview: Preview | null;
  onApplied: (budget: number) => void;
  reset: () => void;
}

type Asked = Omit<ApplyProps, "preview" | "onApplied" | "reset"> & { preview: Preview };

export function Apply(props: ApplyProps) {
  const { tried, budget, preview, onApplied, reset, ...rest } = props;
  // What is asked stays as it was when it was: a dialog must not change under somebody's finger.
  const [asked, setAsked] = useState<Asked | null>(null);
  const may = useMaySpend();
  const same = tried === budget;
  return (
    <div className="row">
      <button
        type="button"
        className="primary"
        disabled={same || preview === null || !may}
        onClick={() => preview && setAsked({ ...rest, tried, budget, preview })}
      >
        {same ? `The budget is ${exactly(tried)}` : `Set the budget to ${exactly(tried)}`}
      </button>
      {!may && <span className="faint">Admins set it.</span>}
      {!same && (
        <button type="button" onClick={reset}>
          Back to {exactly(budget)}
        </button>
      )}
      {asked && (
        <AskedDialog
          asked={asked}
          budget={budget}
          onApplied={onApplied}
          close={() => setAsked(null)}
        />
      )}
    </div>
  );
}

interface AskedDialogProps {
  asked: Asked;
  /** As it is now. */
  budget: number;
  onApplied: (budget: number) => void;
  close: () => void;
}

function AskedDialog({ asked, budget, onApplied, close }: AskedDialogProps) {
  const { tried } = asked;
  const wanted = exactly(tried);
  const moved = budget !== asked.budget && budget !== settable(tried);
  const apply = async () => {
    await client.put<Budget>("/budget", { budget_per_hour: settable(tried) });
    onApplied(tried);
  };
  return (
    <Confirm
      title={`Set the budget to ${wanted}?`}
      action={moved ? null : `Set it to ${wanted}`}
      onConfirm={apply}
      onClose={close}
    >
      {moved ? (
        <p className="warn" role="alert">
          Somebody else has changed the budget from {exactly(asked.budget)} to {exactly(budget)}{" "}
          meanwhile. Close this, and look again at what would change.
        </p>
      ) : (
        <WhatHappens {...asked} />
      )}
    </Confirm>
  );
}

/** What is sent, to the last digit. */
function exactly(budget: number): string {
  return `${usdExactly(budget)}/h`;
}

function WhatHappens({ tried, budget, period, now, billed, cap, preview }: Asked) {
  const { unchanged, average_jct_s: jct, too_small_per_hour: least } = preview;
  return (
    <ul className="what-happens">
      <li>
        The budget goes from <b>{exactly(budget)}</b> to <b>{exactly(tried)}</b> on average
        {period !== null && " over a week"} ({change(budget, tried)}), at once.
      </li>
      {period !== null && (
        <li>
          All periods of the calendar are scaled alike: {period}, which holds now, goes from{" "}
          {usdPerHour(now)} to {usdPerHour((now * tried) / budget)}.
        </li>
      )}
      <li>
        Jobs are expected to take <b>{duration(jct)}</b> on average
        {period !== null && ", as if all hours had that"}; {duration(unchanged.average_jct_s)} at
        today’s budget ({change(unchanged.average_jct_s, jct)}).
      </li>
      <li>{reached(preview)}</li>
      <li>The average that is steered to counts from now: what was over or under is forgiven.</li>
      {least !== null && <li className="warn">{shortWords(least, tried, cap)}</li>}
      {billed && <li>{billed}</li>}
      <li>{capWords(tried, cap)}</li>
    </ul>
  );
}

/** Which classes change, and whom of those that run now it reaches. */
export function reached(preview: Preview): string {
  const changed = preview.classes.filter(differs);
  if (changed.length === 0) return "No class gets other GPUs than now.";
  const names = changed.map((one) => one.name);
  const shown = names.length > 4 ? `${names.slice(0, 3).join(", ")} and others` : names.join(", ");
  const active = changed.reduce((sum, one) => sum + one.active_jobs, 0);
  const get = changed.length === 1 ? "gets" : "get";
  const jobs = active === 0 ? "no job of them is active" : rescaled(active);
  return `${plural(changed.length, "class", "classes")} ${get} other GPUs (${shown}); ${jobs}.`;
}

function rescaled(active: number): string {
  return active === 1
    ? "1 active job may be rescaled"
    : `${plural(active, "active job")} may be rescaled`;
}

export function capWords(budget: number, cap: number | null): string {
  if (cap === null) return "There is no hard cap.";
  if (budget > cap) {
    return `The hard cap of ${usdPerHour(cap)} stays, and it is below this budget: no more than the cap is ever spent.`;
  }
  return `The hard cap of ${usdPerHour(cap)} stays.`;
}
