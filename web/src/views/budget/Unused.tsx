import type { Cost } from "../../api/types";
import { usdPerHour } from "../../format";
import { unusedWords } from "./money";
import "./budget.css";

/** What is paid for at this moment though no job holds it, and why it is. */
export function Unused({ cost }: { cost: Cost }) {
  if (!cost.unused || cost.unused.length === 0) return null;
  return (
    <ul className="unused faint small" aria-label="Paid for now, and used by no job">
      {cost.unused.map((one) => (
        <li key={one.why}>
          Now {usdPerHour(one.per_hour)} {unusedWords(one)}.
        </li>
      ))}
    </ul>
  );
}
