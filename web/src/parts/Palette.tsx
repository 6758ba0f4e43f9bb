import { useEffect, useId, useRef, useState, type KeyboardEvent } from "react";

import type { ClassList, JobList, SweepList } from "../api/types";
import { linkTo, useAnswer, usePicture } from "../state/hooks";
import type { Picture } from "../state/live";
import { found, step, type Target } from "./found";

const MOST_ENDED = 8;
/** Letters of a search: the service takes no more. */
const LONGEST = 100;

/** A button, and the keys that do the same: search over views, jobs, sweeps, teams, classes and nodes. */
export function Palette({ views }: { views: readonly Target[] }) {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const pressed = (event: globalThis.KeyboardEvent) => {
      if (!opens(event) || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      setOpen(true);
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
  return (
    <>
      <button
        type="button"
        className="quiet find"
        aria-keyshortcuts="Control+K Meta+K /"
        title="Search (Ctrl K, or /)"
        onClick={() => setOpen(true)}
      >
        Search <kbd aria-hidden="true">/</kbd>
      </button>
      {open && <Search views={views} onClose={() => setOpen(false)} />}
    </>
  );
}

/** Ctrl or Cmd with K anywhere; a slash where nobody writes. */
function opens(event: globalThis.KeyboardEvent): boolean {
  if (event.key.toLowerCase() === "k") return (event.ctrlKey || event.metaKey) && !event.altKey;
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return false;
  return !(event.target instanceof Element && event.target.closest("input, textarea, select"));
}

function Search({ views, onClose }: { views: readonly Target[]; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useId();
  const results = found(useTargets(views, text), text);
  const chosen = Math.min(at, results.length - 1);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal(); // and gives the focus back when it is closed
    return () => element?.close();
  }, []);
  const go = (target: Target | undefined) => {
    if (!target) return;
    window.location.hash = target.href;
    onClose();
  };
  const keys = (event: KeyboardEvent) => {
    const next = step(chosen, results.length, event.key);
    if (next === null && event.key !== "Enter") return;
    event.preventDefault();
    if (next === null) go(results[chosen]);
    else setAt(next);
  };
  return (
    <dialog ref={dialog} className="dialog palette" aria-label="Search" onClose={onClose}>
      <input
        type="text"
        role="combobox"
        aria-label="Search jobs, classes, teams, nodes and views"
        aria-expanded={results.length > 0}
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={results.length > 0 ? `${list}-${chosen}` : undefined}
        placeholder="A job, a class, a team, a node or a view"
        autoComplete="off"
        maxLength={LONGEST}
        spellCheck={false}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={keys}
      />
      <Results id={list} results={results} chosen={chosen} go={go} />
      <p className="faint small" role="status">
        {results.length === 0
          ? "Nothing is named so."
          : "↑ ↓ to choose, Enter to open, Esc to close"}
      </p>
    </dialog>
  );
}

interface ResultsProps {
  id: string;
  results: readonly Target[];
  chosen: number;
  go: (target: Target) => void;
}

function Results({ id, results, chosen, go }: ResultsProps) {
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return (
    <ul id={id} ref={list} role="listbox" aria-label="Found">
      {results.map((target, n) => (
        // The keys are the field's, as in every combobox.
        // eslint-disable-next-line jsx-a11y/click-events-have-key-events
        <li
          key={target.href}
          id={`${id}-${n}`}
          role="option"
          aria-selected={n === chosen}
          onClick={() => go(target)}
        >
          <span>{target.name}</span> <span className="faint small">{target.kind}</span>
        </li>
      ))}
    </ul>
  );
}

/** Active jobs and nodes are at hand; classes and jobs that have ended are asked for. */
function useTargets(views: readonly Target[], text: string): Target[] {
  const picture = usePicture();
  const classes = useAnswer<ClassList>("/classes").data?.classes ?? [];
  const search = new URLSearchParams({
    all: "true",
    limit: String(MOST_ENDED),
    search: text.trim(),
  });
  const path = text.trim() === "" ? null : `/jobs?${search.toString()}`;
  const ended = useAnswer<JobList>(path).data?.jobs ?? [];
  const sweeps = useAnswer<SweepList>("/sweeps?all=true&limit=100").data?.sweeps ?? [];
  return [
    ...views,
    ...[...picture.jobs.values(), ...ended].map(jobTarget),
    ...(picture.budget?.parts ?? []).map(teamTarget),
    ...sweeps.map(sweepTarget),
    ...classes.map((name) => ({ kind: "class", name, href: linkTo("classes", name) })),
    ...[...picture.nodes.values()].map(nodeTarget),
  ];
}

type Job = Pick<JobList["jobs"][number], "id" | "name" | "class" | "state">;

function jobTarget({ id, name, class: of, state }: Job): Target {
  return { kind: `job ${id}`, name, also: `${of} ${state}`, href: linkTo("jobs", id) };
}

function sweepTarget({ id, name, class: of }: SweepList["sweeps"][number]): Target {
  return { kind: `sweep ${id}`, name, also: of, href: linkTo("jobs", id) };
}

function teamTarget({ name, classes }: { name: string; classes: readonly string[] }): Target {
  return { kind: "team", name, also: classes.join(" "), href: linkTo("teams", name) };
}

type Node = Picture["nodes"] extends ReadonlyMap<number, infer N> ? N : never;

function nodeTarget({ id, gpu_type: type, gpus }: Node): Target {
  return { kind: `${gpus}×${type}`, name: `node ${id}`, href: linkTo("cluster", String(id)) };
}
