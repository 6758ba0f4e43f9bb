import { useState } from "react";

import type { Cost, Statement } from "../../api/types";
import { Shown } from "../../parts/basics";
import { useAnswer } from "../../state/hooks";
import { Group } from "./Group";
import { taggedRows } from "./model";

const DAY_S = 86_400;
const EVERY_MS = 30_000;

/** The month by the values of a tag, such as a project, where jobs have tags. */
export function Tags({ statement }: { statement: Statement }) {
  const kinds = statement.tag_kinds ?? [];
  const [chosen, choose] = useState<string | null>(null);
  const kind = kinds.find((one) => one === chosen) ?? kinds[0];
  // Its end, which stays as it is while the month goes on.
  const { since, complete, days_in_month: days } = statement;
  const until = since + days * DAY_S;
  const path =
    kind && `/cost?by=${encodeURIComponent(`tag:${kind}`)}&since=${since}&until=${until}`;
  const answer = useAnswer<Cost>(path ?? null, 0, complete ? 0 : EVERY_MS);
  if (!kind) return null;
  const tools = kinds.length > 1 && (
    <select aria-label="Tag" value={kind} onChange={(event) => choose(event.target.value)}>
      {kinds.map((one) => (
        <option key={one}>{one}</option>
      ))}
    </select>
  );
  return (
    <Shown answer={answer} what="what tags spent">
      {(cost) => (
        <Group
          group={{ title: `By tag: ${kind}`, nobody: "untagged", rows: taggedRows(cost) }}
          total={statement.total_usd}
          tools={tools}
        />
      )}
    </Shown>
  );
}
