import { useEffect, useState, type ComponentType } from "react";

import { Boundary } from "./parts/Boundary";
import { Login } from "./parts/Login";
import { Loading, Problem } from "./parts/basics";
import { useLookedAt } from "./state/attention";
import { live, linkTo, usePicture, useRoute } from "./state/hooks";
import { session, useAccess } from "./state/session";
import { nextTheme, setTheme, useTheme } from "./state/theme";
import { Budget } from "./views/Budget";
import { Classes } from "./views/Classes";
import { Cluster } from "./views/Cluster";
import { Events } from "./views/Events";
import { Jobs } from "./views/Jobs";
import { WhatIf } from "./views/WhatIf";

/** A view gets what follows its own name in the address. */
export type View = ComponentType<{ rest: string[] }>;

const VIEWS: readonly (readonly [key: string, name: string, view: View])[] = [
  ["budget", "Budget", Budget],
  ["jobs", "Jobs", Jobs],
  ["cluster", "Cluster", Cluster],
  ["classes", "Classes", Classes],
  ["what-if", "What-if", WhatIf],
  ["events", "Events", Events],
];

const RETRY_MS = 2000;
/** Until a service that was not there is asked again. */

export function App() {
  const access = useAccess();
  const seen = useLookedAt();
  const [problem, setProblem] = useState<Error | null>(null);
  const [round, setRound] = useState(0);
  const again = () => setRound((n) => n + 1);
  useEffect(() => {
    session.check().then(
      () => setProblem(null),
      (error: unknown) => setProblem(error instanceof Error ? error : new Error(String(error))),
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
  return (
    <div className="shell">
      <a className="skip" href="#main" onClick={(event) => skip(event)}>
        Skip to the content
      </a>
      <header className="top">
        <a className="brand" href={linkTo("budget")}>
          <img src="/favicon.svg" alt="" width="26" height="26" /> BOA
        </a>
        <nav aria-label="Views">
          {VIEWS.map(([name, title]) => (
            <a key={name} href={linkTo(name)} aria-current={name === current ? "page" : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <div className="top-tools">
          <ConnectionPill />
          <ThemeButton />
          {session.hasToken && (
            <button type="button" className="quiet" onClick={() => session.logout()}>
              Log out
            </button>
          )}
        </div>
      </header>
      <Gone />
      <main id="main" tabIndex={-1}>
        <Boundary key={current}>{Current && <Current rest={rest} />}</Boundary>
      </main>
    </div>
  );
}

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
