import type { ReactNode } from "react";

import type { Frontier, Preview } from "../../api/types";
import { change, duration, trimmed, usdPerHour } from "../../format";
import { Wide } from "../../parts/Wide";
import { moreWords, shortWords } from "./money";

interface OutcomeProps {
  preview: Preview;
  frontier: Frontier;
  tried: number;
  cap: number | null;
}

/** What would come of a budget, beside the same prediction for the budget there is. */
export function Outcome({ preview, frontier, tried, cap }: OutcomeProps) {
  const { unchanged } = preview;
  const spend = (planned: number) => Math.min(planned, cap ?? Infinity); // never more is rented
  return (
    <div className="outcome" aria-live="polite">
      <Notice preview={preview} tried={tried} cap={cap} />
      <Wide label="Predicted">
        <table className="plain">
          <thead>
            <tr>
              <th scope="col">Predicted</th>
              <th scope="col" className="numeric">
                at today’s budget
              </th>
              <th scope="col" className="numeric">
                at {usdPerHour(tried)}
              </th>
              <th scope="col" className="numeric">
                change
              </th>
            </tr>
          </thead>
          <tbody>
            <Line
              name="average JCT"
              now={duration(unchanged.average_jct_s)}
              then={duration(preview.average_jct_s)}
              change={change(unchanged.average_jct_s, preview.average_jct_s)}
            />
            <P95 preview={preview} />
            <Line
              name="average bill"
              now={usdPerHour(spend(unchanged.budget_per_hour))}
              then={usdPerHour(spend(preview.spend_per_hour))}
              change={change(spend(unchanged.budget_per_hour), spend(preview.spend_per_hour))}
            />
          </tbody>
        </table>
      </Wide>
      <Gpus preview={preview} />
      {preview.too_small_per_hour === null && <p>{moreWords(frontier, tried, cap)}</p>}
    </div>
  );
}

function Line({
  name,
  now,
  then,
  change: by,
}: {
  name: string;
  now: ReactNode;
  then: ReactNode;
  change: string;
}) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td className="numeric">{now}</td>
      <td className="numeric">
        <b>{then}</b>
      </td>
      <td className="numeric">{by}</td>
    </tr>
  );
}

function P95({ preview }: { preview: Preview }) {
  const { p95_jct_s: then, unchanged_p95_jct_s: now } = preview;
  if (then === null) {
    return (
      <tr>
        <th scope="row">P95 of JCT</th>
        <td colSpan={3} className="numeric faint">
          not known yet: needs 20 finished jobs per class
        </td>
      </tr>
    );
  }
  return (
    <Line
      name="P95 of JCT"
      now={now === null ? "–" : duration(now)}
      then={duration(then)}
      change={now === null ? "–" : change(now, then)}
    />
  );
}

/** A budget that is too small, or larger than anything needs. */
function Notice({ preview, tried, cap }: Omit<OutcomeProps, "frontier">) {
  const least = preview.too_small_per_hour;
  if (least !== null) {
    return (
      <p className="note warn" role="alert">
        {shortWords(least, tried, cap)} What is shown is the plan that costs least.
      </p>
    );
  }
  const over = Math.min(preview.left_over_per_hour, (cap ?? Infinity) - preview.spend_per_hour);
  if (over < 0.005) return null;
  const whose = cap !== null && cap < tried ? " of the hard cap" : "";
  return (
    <p className="note">
      {usdPerHour(over)}
      {whose} would be left over: the fastest plan there is costs{" "}
      {usdPerHour(preview.spend_per_hour)}.
    </p>
  );
}

function Gpus({ preview }: { preview: Preview }) {
  const used = Object.entries(preview.cluster).filter(([, size]) => size.mean > 0);
  if (used.length === 0) return null;
  return (
    <p>
      GPUs in use:{" "}
      {used.map(([type, size], n) => (
        <span key={type}>
          {n > 0 && ", "}
          <b>
            {trimmed(size.mean, size.mean < 10 ? 1 : 0)} {type}
          </b>{" "}
          on average (at most {trimmed(size.p95, 0)} in 95 % of the time)
        </span>
      ))}
      .
    </p>
  );
}
