/** Small parts that every view is made of. */
import type { ReactNode } from "react";

import type { JobState } from "../api/types";
import { clock } from "../format";

/** `wide`: as wide as the page, also beside others. */
export function Card({
  title,
  tools,
  wide = false,
  children,
}: {
  title?: ReactNode;
  tools?: ReactNode;
  wide?: boolean;
  children: ReactNode;
}) {
  return (
    <section className={wide ? "card wide" : "card"}>
      {(title ?? tools) && (
        <header className="card-head">
          {title && <h2>{title}</h2>}
          {tools && <div className="card-tools">{tools}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

export type Tone = "good" | "warn" | "bad" | "plain";

/** One figure that answers one question. */
export function Stat({
  label,
  value,
  note,
  tone = "plain",
}: {
  label: string;
  value: ReactNode;
  note?: ReactNode;
  tone?: Tone;
}) {
  return (
    <div className={`stat ${tone}`}>
      <div className="stat-label">{label}</div>
      <div className="stat-value">{value}</div>
      {note && <div className="stat-note">{note}</div>}
    </div>
  );
}

export function StateBadge({ state }: { state: JobState }) {
  return <span className={`badge ${state}`}>{state}</span>;
}

/** How much of it is done, 0 to 1; null: nobody knows. */
export function Progress({ done, label }: { done: number | null; label: string }) {
  if (done === null) return <span className="faint">unknown</span>;
  const percent = Math.max(0, Math.min(100, done * 100));
  return (
    <span className="progress">
      <span
        className="progress-track"
        role="progressbar"
        aria-label={label}
        aria-valuenow={Math.round(percent)}
        aria-valuemin={0}
        aria-valuemax={100}
      >
        <span className="progress-bar" style={{ width: `${percent}%` }} />
      </span>
      <span className="progress-text">{Math.floor(percent)} %</span>
    </span>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <div className="state" role="status">
      <span className="spinner" aria-hidden="true" /> Loading {what}…
    </div>
  );
}

/** Nothing there yet, and what would bring it about. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="state">
      <strong>{title}</strong>
      {children && <div className="faint">{children}</div>}
    </div>
  );
}

export function Problem({ error, again }: { error: Error; again?: () => void }) {
  return (
    <div className="state bad" role="alert">
      <span>{error.message}</span>
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

interface ShownProps<T> {
  answer: {
    data: T | null;
    error: Error | null;
    loading: boolean;
    /** When `data` came, by the server's clock; 0: nobody knows. */
    at?: number;
    again: () => void;
  };
  what: string;
  children: (data: T) => ReactNode;
}

/** One of the three that an answer can be: on its way, refused, there. */
export function Shown<T>({ answer, what, children }: ShownProps<T>) {
  const { data, error, at = 0, again } = answer;
  if (data === null)
    return error ? <Problem error={error} again={again} /> : <Loading what={what} />;
  return (
    <>
      {error && (
        <p className="old" role="status">
          Could not be brought up to date: {error.message.replace(/\.$/, "")}
          {at > 0 && `; as of ${clock(at)}`}
        </p>
      )}
      {children(data)}
    </>
  );
}
