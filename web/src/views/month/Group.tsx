import type { ReactNode } from "react";

import { percent, usd } from "../../format";
import { Card } from "../../parts/basics";
import { Wide } from "../../parts/Wide";
import { amountOf, type Grouped, type Row } from "./model";

interface GroupProps {
  group: Grouped;
  total: number;
  tools?: ReactNode;
}

/** Who spent how much of it, and what parts of the budget are guaranteed. */
export function Group({ group, total, tools }: GroupProps) {
  const rights = group.rows.some((row) => row.budget_usd);
  const counted = group.rows.some((row) => row.jobs > 0);
  // A table with guarantees needs a row of its own.
  return (
    <Card title={group.title} tools={tools} wide={rights}>
      <Wide label={group.title}>
        <table className="plain">
          <thead>
            <tr>
              <th scope="col">Who</th>
              <th scope="col" aria-label="Share" />
              {counted && (
                <th scope="col" className="numeric">
                  Jobs
                </th>
              )}
              <th scope="col" className="numeric">
                Cost
              </th>
              {rights && (
                <th scope="col" className="numeric">
                  Guaranteed
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {group.rows.map((row) => (
              <tr key={row.name ?? ""}>
                <th scope="row">
                  {row.name === null || row.name === "" ? <i>{group.nobody}</i> : row.name}
                </th>
                <td className="part-bar">
                  <span style={{ width: `${(100 * row.total_usd) / total}%` }} />
                </td>
                {counted && <td className="numeric">{row.jobs}</td>}
                <td className="numeric">{amountOf(row, "total")}</td>
                {rights && <td className="numeric">{rightWords(row)}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
    </Card>
  );
}

/** "$400.00: 32 % spent", with that of the parts within it. */
function rightWords({ budget_usd: right, with_parts_usd: spent }: Row): string {
  if (!right) return "–";
  return `${usd(right)}: ${percent((spent ?? 0) / right)} spent`;
}
