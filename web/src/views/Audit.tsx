import { useCallback, useMemo, useState } from "react";

import { asError } from "../api/client";
import type { AuditLine, AuditList } from "../api/types";
import { download, fileName } from "../charts/export";
import { moment, whole } from "../format";
import { Card, Empty, Problem, Shown } from "../parts/basics";
import { linkTo, useAnswer, useQuery } from "../state/hooks";
import { client } from "../state/session";
import {
  ABOUT,
  fitting,
  fromQuery,
  placeOf,
  toggled,
  toQuery,
  type AuditFilters,
} from "./audit/filters";
import { changed, isRefused, whoOf } from "./audit/words";
import { SearchBox } from "./jobs/Toolbar";
import "./events/events.css";
import "./jobs/jobs.css";

const EVERY_MS = 15_000;
const PAGE = 200;

/** Who changed what, when and from where; and what was refused. For admins. */
export function Audit() {
  const [query, setQuery] = useQuery();
  const filters = useMemo(() => fromQuery(query), [query]);
  const change = useCallback((next: AuditFilters) => setQuery(toQuery(next)), [setQuery]);
  const path = pathOf(filters.who);
  const newest = useAnswer<AuditList>(path, 0, EVERY_MS);
  return (
    <>
      <h1>Audit</h1>
      <p className="faint">
        Every change that somebody asked for, and requests that were refused, newest first.
      </p>
      <Tools filters={filters} onFilters={change} />
      <Shown answer={newest} what="the audit log">
        {(found) => <Lines key={path} newest={found} path={path} filters={filters} />}
      </Shown>
    </>
  );
}

/** Of one person, or of everybody. */
function pathOf(who: string): string {
  return `/audit?limit=${PAGE}${who ? `&who=${encodeURIComponent(who)}` : ""}`;
}

interface ToolsProps {
  filters: AuditFilters;
  onFilters: (filters: AuditFilters) => void;
}

function Tools({ filters, onFilters }: ToolsProps) {
  return (
    <div className="events-tools">
      <SearchBox
        label="Search the audit log"
        hint="words, a name, a job's number"
        value={filters.search}
        onChange={(search) => onFilters({ ...filters, search })}
      />
      <div className="chips" role="group" aria-label="Lines to show">
        {ABOUT.map(([about, words]) => (
          <button
            key={about}
            type="button"
            className="chip"
            aria-pressed={filters.about.includes(about)}
            onClick={() => onFilters(toggled(filters, about))}
          >
            {words}
          </button>
        ))}
        {filters.who && (
          <button
            type="button"
            className="chip"
            aria-pressed={true}
            title="Show everybody’s again"
            onClick={() => onFilters({ ...filters, who: "" })}
          >
            only {filters.who} ✕
          </button>
        )}
      </div>
    </div>
  );
}

interface LinesProps {
  newest: AuditList;
  path: string;
  filters: AuditFilters;
}

/** The newest are asked for again and again; older ones once. */
function Lines({ newest, path, filters }: LinesProps) {
  const [older, setOlder] = useState<readonly AuditLine[]>([]);
  const [before, setBefore] = useState(newest.before);
  const [working, setWorking] = useState(false);
  const [problem, setProblem] = useState<Error | null>(null);
  const seen = new Set(newest.lines.map(({ number }) => number));
  const all = [...newest.lines, ...older.filter(({ number }) => !seen.has(number))];
  const lines = fitting(all, filters);
  const more = () => {
    setWorking(true);
    client
      .get<AuditList>(`${path}&before=${before}`)
      .then((got) => {
        setOlder([...older, ...got.lines]);
        setBefore(got.before);
        setProblem(null);
      })
      .catch((error: unknown) => setProblem(asError(error)))
      .finally(() => setWorking(false));
  };
  if (all.length === 0) {
    return (
      <Card>
        <Empty
          title={filters.who ? `${filters.who} has changed nothing` : "Nothing was changed yet"}
        />
      </Card>
    );
  }
  const save = () =>
    download(fileName("audit", "json"), "application/json", JSON.stringify(lines, null, 2));
  return (
    <Card>
      {lines.length === 0 ? (
        <Empty title="No line fits">Take away a filter, or show older ones.</Empty>
      ) : (
        <ul className="events" aria-label="Audit log">
          {lines.map((line) => (
            <Line key={line.number} line={line} filters={filters} />
          ))}
        </ul>
      )}
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

function Line({ line, filters }: { line: AuditLine; filters: AuditFilters }) {
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
        <b>
          {line.who ? (
            <a href={linkToAudit({ ...filters, who: line.who })}>{whoOf(line)}</a>
          ) : (
            whoOf(line)
          )}
        </b>{" "}
        <Subject line={line} /> {said}
        {refused && ` — ${line.result}`}
        <span className="faint"> from {line.address || "an unknown address"}</span>
      </span>
    </li>
  );
}

function linkToAudit(filters: AuditFilters): string {
  return `${linkTo("audit")}?${toQuery(filters)}`;
}

/** The job, the sweep, the class, …; with a link where it has a page. */
function Subject({ line }: { line: AuditLine }) {
  if (!line.subject) return null;
  const place = placeOf(line);
  const name = <code className="mono">{line.subject}</code>;
  return place ? <a href={linkTo(...place)}>{name}</a> : name;
}
