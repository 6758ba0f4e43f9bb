import { useState } from "react";

import { asError } from "../api/client";
import type { AuditLine, AuditList } from "../api/types";
import { download, fileName } from "../charts/export";
import { moment, whole } from "../format";
import { Card, Empty, Problem, Shown } from "../parts/basics";
import { useAnswer } from "../state/hooks";
import { client } from "../state/session";
import { changed, isRefused, whoOf } from "./audit/words";
import "./events/events.css";

const EVERY_MS = 15_000;
const PAGE = 200;

/** Who changed what, when and from where; and what was refused. For admins. */
export function Audit() {
  const newest = useAnswer<AuditList>(`/audit?limit=${PAGE}`, 0, EVERY_MS);
  return (
    <>
      <h1>Audit</h1>
      <p className="faint">
        Every change that somebody asked for, and requests that were refused, newest first.
      </p>
      <Shown answer={newest} what="the audit log">
        {(found) => <Lines newest={found} />}
      </Shown>
    </>
  );
}

/** The newest are asked for again and again; older ones once. */
function Lines({ newest }: { newest: AuditList }) {
  const [older, setOlder] = useState<readonly AuditLine[]>([]);
  const [before, setBefore] = useState(newest.before);
  const [working, setWorking] = useState(false);
  const [problem, setProblem] = useState<Error | null>(null);
  const seen = new Set(newest.lines.map(({ number }) => number));
  const lines = [...newest.lines, ...older.filter(({ number }) => !seen.has(number))];
  const more = () => {
    setWorking(true);
    client
      .get<AuditList>(`/audit?limit=${PAGE}&before=${before}`)
      .then((got) => {
        setOlder([...older, ...got.lines]);
        setBefore(got.before);
        setProblem(null);
      })
      .catch((error: unknown) => setProblem(asError(error)))
      .finally(() => setWorking(false));
  };
  if (lines.length === 0) {
    return (
      <Card>
        <Empty title="Nothing was changed yet" />
      </Card>
    );
  }
  const save = () =>
    download(fileName("audit", "json"), "application/json", JSON.stringify(lines, null, 2));
  return (
    <Card>
      <ul className="events" aria-label="Audit log">
        {lines.map((line) => (
          <Line key={line.number} line={line} />
        ))}
      </ul>
      {problem && <Problem error={problem} />}
      <div className="events-more">
        {before !== null && (
          <button type="button" onClick={more} disabled={working}>
            {working ? "Loading…" : "Show older ones"}
          </button>
        )}
        <button type="button" onClick={save}>
          Save these as JSON
        </button>
      </div>
    </Card>
  );
}

function Line({ line }: { line: AuditLine }) {
  const said = changed(line.before, line.after);
  const refused = isRefused(line);
  return (
    <li className={refused ? "event audit trouble" : "event audit"}>
      <time dateTime={new Date(line.at * 1000).toISOString()}>{moment(line.at)}</time>
      <span className="event-kind">
        {line.what}
        {line.count > 1 && ` ×${whole(line.count)}`}
      </span>
      <span className="event-text">
        <b>{whoOf(line)}</b> {line.subject && <code className="mono">{line.subject}</code>} {said}
        {refused && ` — ${line.result}`}
        <span className="faint"> from {line.address || "an unknown address"}</span>
      </span>
    </li>
  );
}
