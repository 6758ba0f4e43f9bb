import { useEffect, useRef, useState, type ComponentType } from "react";

import { asError } from "./api/client";
import type { Budget as BudgetAnswer, WhoAmI } from "./api/types";
import { usdPerHour } from "./format";
import { Boundary } from "./parts/Boundary";
import { Login } from "./parts/Login";
import { Loading, Problem } from "./parts/basics";
import type { Target } from "./parts/found";
import { Palette } from "./parts/Palette";
import { useLookedAt } from "./state/attention";
import { live, linkTo, useAnswer, usePicture, useRoute } from "./state/hooks";
import { session, useAccess } from "./state/session";
import { nextTheme, setTheme, useTheme } from "./state/theme";
import { Who } from "./state/who";
import { Audit } from "./views/Audit";
import { Notifications } from "./views/audit/Notifications";
import { Budget } from "./views/Budget";
import { Classes } from "./views/Classes";
import { Cluster } from "./views/Cluster";
import { Events } from "./views/Events";
import { FirstRun } from "./views/FirstRun";
import { Jobs } from "./views/Jobs";
import { Month } from "./views/Month";
import { Teams } from "./views/Teams";
import { useIsShared } from "./views/teams/Payer";
import { WhatIf } from "./views/WhatIf";

/** A view gets what follows its own name in the address. */
export type View = ComponentType<{ rest: string[] }>;

const VIEWS: readonly (readonly [key: string, name: string, view: View])[] = [
  ["budget", "Budget", Budget],
  ["month", "Month", Month],
  ["teams", "Teams", Teams],
  ["jobs", "Jobs", Jobs],
  ["cluster", "Cluster", Cluster],
  ["classes", "Classes", Classes],
  ["what-if", "What-if", WhatIf],
  ["events", "Events", Events],
  ["audit", "Audit", Administration],
];
/** Views that others would only be refused. */
const FOR_ADMINS = ["audit"];
/** Views that say something only where several share the budget. */
const FOR_TEAMS = ["teams"];

/** Views that somebody with an empty service looks at first. */
const BEGINNINGS = ["budget", "jobs"];

const RETRY_MS = 2000;
/** Until a service that was not there is asked again. */

/** Who changed what, and who is told. */
function Administration() {
  return (
    <>
      <Audit />
      <Notifications />
    </>
  );
}

export function App() {
  const access = useAccess();
  const seen = useLookedAt();
  const [problem, setProblem] = useState<Error | null>(null);
  const [round, setRound] = useState(0);
  const again = () => setRound((n) => n + 1);
  useEffect(() => {
    session.check().then(
      () => setProblem(null),
      (error: unknown) => setProblem(asError(error)),
    );
  }, [round]);
  useEffect(() => {
    if (!problem) return undefined;
    const timer = setTimeout(again, RETRY_MS);
    return () => clearTimeout(timer);
  }, [problem]);
  useEffect(() => {
    if (access === "open") return seen ? live.start() : undefined;
    live.clear();
    return undefined;
  }, [access, seen]);
  if (access === "needed" || access === "wrong") return <Login access={access} />;
  if (access === "unknown") {
    return problem ? <Problem error={problem} again={again} /> : <Loading what="the dashboard" />;
  }
  return <Shell />;
}

function Shell() {
  const [key, ...rest] = useRoute();
  const [current, , Current] = VIEWS.find(([name]) => name === key) ?? VIEWS[0] ?? [];
  const nav = useRef<HTMLElement>(null);
  const who = useAnswer<WhoAmI>("/whoami").data;
  const isAdmin = who?.role === "admin";
  const isShared = useIsShared();
  const shown = VIEWS.filter(
    ([name]) => (isAdmin || !FOR_ADMINS.includes(name)) && (isShared || !FOR_TEAMS.includes(name)),
  );
  useEffect(() => showCurrent(nav.current), [current, shown.length]);
  return (
    <div className="shell">
      <a className="skip" href="#main" onClick={(event) => skip(event)}>
        Skip to the content
      </a>
      <Title view={current ?? "budget"} rest={rest} />
      <div className="above">
        <header className="top">
          <a className="brand" href={linkTo("budget")}>
            <img src="/favicon.svg" alt="" width="26" height="26" /> BOA
          </a>
          <nav aria-label="Views" ref={nav}>
            {shown.map(([name, title]) => (
              <a
                key={name}
                href={linkTo(name)}
                aria-current={name === current ? "page" : undefined}
              >
                {title}
              </a>
            ))}
          </nav>
          <div className="top-tools">
            <Palette views={shown.map(([name, title]) => targetOf(name, title))} />
            <ConnectionPill />
            <ThemeButton />
            {session.hasToken && (
              <button
                type="button"
                className="quiet"
                title={who?.name ? `${who.name}, ${who.role}` : undefined}
                onClick={() => session.logout()}
              >
                Log out
              </button>
            )}
          </div>
        </header>
        <Gone />
      </div>
      <main id="main" tabIndex={-1}>
        <Who value={who}>
          <Boundary key={current}>
            {BEGINNINGS.includes(current ?? "") && <FirstRun />}
            {Current && <Current rest={rest} />}
          </Boundary>
        </Who>
      </main>
    </div>
  );
}

function targetOf(name: string, title: string): Target {
  return { kind: "view", name: title, href: linkTo(name) };
}

/** On a phone not all of them fit beside each other. */
function showCurrent(nav: HTMLElement | null): void {
  const link = nav?.querySelector<HTMLElement>("[aria-current]");
  if (!nav || !link) return;
  nav.scrollLeft = link.offsetLeft - nav.offsetLeft - (nav.clientWidth - link.offsetWidth) / 2;
}

/** What a tab that is left open says. */
function Title({ view, rest }: { view: string; rest: string[] }) {
  const { budget } = usePicture();
  const title = titleOf(view, rest, budget);
  useEffect(() => {
    document.title = title;
  }, [title]);
  return null;
}

export function titleOf(view: string, [first]: string[], budget: Money | null): string {
  const name = VIEWS.find(([key]) => key === view)?.[1] ?? "Budget";
  if (view === "budget" && budget) {
    const { spend_now_per_hour: spend, budget_per_hour: allowed } = budget;
    return `${usdPerHour(spend)} of ${usdPerHour(allowed)} · BOA`;
  }
  if (view === "jobs" && first !== undefined) {
    return `${first.startsWith("s") ? "sweep" : "job"} ${first} · BOA`;
  }
  if ((view === "classes" || view === "teams") && first !== undefined) return `${first} · BOA`;
  return `${name} · BOA`;
}

type Money = Pick<BudgetAnswer, "spend_now_per_hour" | "budget_per_hour">;

function skip(event: { preventDefault: () => void }): void {
  event.preventDefault(); // the address belongs to the views
  document.getElementById("main")?.focus();
}

function ConnectionPill() {
  const { connection, version } = usePicture();
  const words = { connecting: "connecting", live: "live", gone: "no connection" }[connection];
  return (
    <span className={`pill ${connection}`} title={version && `boa ${version}`} role="status">
      {words}
    </span>
  );
}

/** What is shown below is what was true when the service was last heard of. */
function Gone() {
  const { connection, heardAt } = usePicture();
  if (connection !== "gone") return null;
  return (
    <div className="gone" role="alert">
      The service does not answer. {heardAt > 0 && "What you see is the last that it said. "}
      Trying again…
    </div>
  );
}

const ICONS = { system: "◐", light: "☀", dark: "☾" } as const;

function ThemeButton() {
  const theme = useTheme();
  return (
    <button
      type="button"
      className="quiet icon"
      onClick={() => setTheme(nextTheme(theme))}
      aria-label={`Colours: ${theme}. Change`}
      title={`Colours: ${theme}`}
    >
      {ICONS[theme]}
    </button>
  );
}
