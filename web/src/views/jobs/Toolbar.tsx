import { useEffect, useRef, useState } from "react";

import type { JobState } from "../../api/types";
import { ENDED } from "../../state/live";
import { ACTIVE, toggled, withEnded, type Filters } from "./filters";

interface ToolbarProps {
  filters: Filters;
  onFilters: (filters: Filters) => void;
  counts: Partial<Record<JobState, number>>;
  classes: readonly string[];
}

export function Toolbar({ filters, onFilters, counts, classes }: ToolbarProps) {
  const shown = filters.ended ? [...ACTIVE, ...ENDED] : ACTIVE;
  return (
    <div className="jobs-tools">
      <SearchBox
        label="Search jobs"
        hint="name, number or class"
        value={filters.search}
        onChange={(search) => onFilters({ ...filters, search })}
      />
      <div className="chips" role="group" aria-label="States to show">
        {shown.map((state) => (
          <button
            key={state}
            type="button"
            className={`chip ${state}`}
            aria-pressed={filters.states.includes(state)}
            onClick={() => onFilters(toggled(filters, state))}
          >
            {state}
            {ACTIVE.includes(state) && <b>{(counts[state] ?? 0).toLocaleString("en-US")}</b>}
          </button>
        ))}
      </div>
      <ClassSelect filters={filters} onFilters={onFilters} classes={classes} />
      <label className="check">
        <input
          type="checkbox"
          checked={filters.ended}
          onChange={(event) => onFilters(withEnded(filters, event.target.checked))}
        />
        Show finished
      </label>
    </div>
  );
}

function ClassSelect({ filters, onFilters, classes }: Omit<ToolbarProps, "counts">) {
  const { jobClass } = filters;
  const known = jobClass && !classes.includes(jobClass) ? [jobClass, ...classes] : classes;
  return (
    <select
      aria-label="Class"
      value={jobClass}
      onChange={(event) => onFilters({ ...filters, jobClass: event.target.value })}
    >
      <option value="">all classes</option>
      {known.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

interface SearchBoxProps {
  label: string;
  hint: string;
  value: string;
  onChange: (value: string) => void;
}

const STILL_MS = 150;

/** Tells of what was typed once the typing pauses. */
export function SearchBox({ label, hint, value, onChange }: SearchBoxProps) {
  const [text, setText] = useState(value);
  const [known, setKnown] = useState(value);
  const tell = useRef(onChange);
  if (known !== value) {
    setKnown(value); // somebody else changed it: a link, the way back
    setText(value);
  }
  useEffect(() => {
    tell.current = onChange;
  }, [onChange]);
  useEffect(() => {
    if (text === known) return;
    const timer = setTimeout(() => {
      setKnown(text);
      tell.current(text);
    }, STILL_MS);
    return () => clearTimeout(timer);
  }, [text, known]);
  return (
    <input
      type="search"
      className="search"
      aria-label={label}
      placeholder={hint}
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  );
}
