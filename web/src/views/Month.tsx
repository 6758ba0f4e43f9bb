import { useState } from "react";

import { wordsOf } from "../api/client";
import type { Statement } from "../api/types";
import { download } from "../charts/export";
import { figure, percent, plural, usd } from "../format";
import { Card, Empty, Loading, Shown, Stat } from "../parts/basics";
import { linkTo, useAnswer, useNow } from "../state/hooks";
import { client } from "../state/session";
import { Days } from "./month/Days";
import { Group } from "./month/Group";
import {
  amountOf,
  budgetPeriod,
  groupsOf,
  isMonth,
  later,
  monthWords,
  present,
} from "./month/model";
import { Saved } from "./month/Saved";
import { Spent } from "./month/Spent";
import { Tags } from "./month/Tags";
import "./budget/budget.css";
import "./month/month.css";

const EVERY_MS = 30_000;

/** `#/month/2026-11`: a month's bill, and who spent what. */
export function Month({ rest }: { rest: string[] }) {
  const now = useNow(60_000);
  if (now === 0) return <Loading what="the month" />;
  const name = rest[0] ?? present(now);
  if (!isMonth(name)) {
    return (
      <Empty title={`“${name}” is no month`}>
        A month is written as <code className="mono">2026-11</code>.{" "}
        <a href={linkTo("month", present(now))}>This month</a>
      </Empty>
    );
  }
  return <OneMonth key={name} name={name} isPresent={name >= present(now)} />;
}

function OneMonth({ name, isPresent }: { name: string; isPresent: boolean }) {
  const every = isPresent ? EVERY_MS : 0;
  const answer = useAnswer<Statement>(`/statement?month=${name}`, 0, every);
  return (
    <>
      <div className="row spread">
        <h1>{monthWords(name)}</h1>
        <nav className="row" aria-label="Months">
          <a href={linkTo("month", later(name, -1))}>← {monthWords(later(name, -1))}</a>
          {!isPresent && (
            <a href={linkTo("month", later(name, 1))}>{monthWords(later(name, 1))} →</a>
          )}
        </nav>
      </div>
      <Shown answer={answer} what="the month">
        {(found) => <Found found={found} name={name} />}
      </Shown>
      <Saved name={name} isPresent={isPresent} />
    </>
  );
}

function Found({ found, name }: { found: Statement; name: string }) {
  return (
    <>
      <div className="stats">
        <Stat
          label={found.complete ? "The bill" : "The bill so far"}
          value={amountOf(found, "total")}
          note={`the budget is ${usd(found.budget_usd)} for ${budgetPeriod(found)}`}
        />
        <Stat
          label="GPUs that jobs held"
          value={amountOf(found, "held")}
          note={`${figure(found.gpu_hours)} GPU-hours, ${plural(found.jobs, "job")}`}
        />
        <Stat label="Idle" value={amountOf(found, "idle")} note={part(found.idle_usd, found)} />
        <Stat
          label="Starting and stopping"
          value={amountOf(found, "booting")}
          note={part(found.booting_usd, found)}
        />
      </div>
      <Spent found={found} />
      <Card title="Day by day" tools={<Files name={name} />}>
        <Days days={found.by_day} />
        <p className="faint small">{found.rule}</p>
      </Card>
      {found.total_usd > 0 && (
        <div className="two">
          {groupsOf(found).map((group) => (
            <Group key={group.title} group={group} total={found.total_usd} />
          ))}
          <Tags statement={found} />
        </div>
      )}
    </>
  );
}

function part(amount: number, { total_usd: total }: Statement): string {
  return total > 0 ? `${percent(amount / total)} of the bill` : "nothing was spent";
}

const FILES = [
  ["csv", "CSV", "text/csv"],
  ["html", "Print view", "text/html"],
] as const;

/** The statement as files: for a spreadsheet, and a page that one prints. */
function Files({ name }: { name: string }) {
  const [problem, setProblem] = useState("");
  const save = (format: string, type: string) => {
    setProblem("");
    fetched(`/statement?month=${name}&format=${format}`).then(
      (text) => download(`boa-${name}.${format}`, type, text),
      (error: unknown) => setProblem(wordsOf(error)),
    );
  };
  return (
    <>
      {problem && (
        <span className="field-problem" role="alert">
          {problem}
        </span>
      )}
      {FILES.map(([format, words, type]) => (
        <button key={format} type="button" className="small" onClick={() => save(format, type)}>
          {words}
        </button>
      ))}
    </>
  );
}

async function fetched(path: string): Promise<string> {
  const pieces: string[] = [];
  for await (const piece of client.text(path, "*/*", new AbortController().signal)) {
    pieces.push(piece);
  }
  return pieces.join("");
}
