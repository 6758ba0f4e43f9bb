/** Which lines of the audit log to show: as the address keeps it. */
import type { AuditLine } from "../../api/types";
import { changed, isRefused, whoOf } from "./words";

export type About = "jobs" | "money" | "access" | "other" | "refused";

export const ABOUT: readonly (readonly [About, string])[] = [
  ["jobs", "Jobs"],
  ["money", "Money"],
  ["access", "Tokens and secrets"],
  ["other", "Other"],
  ["refused", "Refused"],
];

const JOBS = ["submit", "stop", "pause", "resume", "job set", "sweep", "sweep stop"];

export function aboutOf(line: AuditLine): About {
  if (isRefused(line)) return "refused";
  if (JOBS.includes(line.what)) return "jobs";
  if (line.what === "budget") return "money";
  return /^(token|secret)\b/.test(line.what) ? "access" : "other";
}

export interface AuditFilters {
  /** None: all. */
  about: readonly About[];
  /** Of this token's name only; empty: of anybody. */
  who: string;
  search: string;
}

export function fromQuery(query: string): AuditFilters {
  const asked = new URLSearchParams(query);
  const named = (asked.get("about") ?? "").split(",");
  return {
    about: ABOUT.map(([about]) => about).filter((about) => named.includes(about)),
    who: asked.get("who") ?? "",
    search: asked.get("search") ?? "",
  };
}

export function toQuery({ about, who, search }: AuditFilters): string {
  const parts = new URLSearchParams();
  if (about.length > 0) parts.set("about", about.join(","));
  if (who) parts.set("who", who);
  if (search) parts.set("search", search);
  return parts.toString().replaceAll("%2C", ",");
}

export function toggled(filters: AuditFilters, about: About): AuditFilters {
  const there = filters.about.includes(about);
  const left = filters.about.filter((each) => each !== about);
  return { ...filters, about: there ? left : [...filters.about, about] };
}

/** Those that fit, of lines of whoever was asked for. */
export function fitting(
  lines: readonly AuditLine[],
  { about, search }: AuditFilters,
): readonly AuditLine[] {
  const needle = search.trim().toLowerCase();
  return lines.filter(
    (line) =>
      (about.length === 0 || about.includes(aboutOf(line))) &&
      (!needle || said(line).toLowerCase().includes(needle)),
  );
}

function said(line: AuditLine): string {
  const { what, subject, address, before, after } = line;
  return [whoOf(line), what, subject, address, changed(before, after)].join(" ");
}

/** Where what a line is about has its page; null: nowhere. */
export function placeOf(line: AuditLine): [view: string, name: string] | null {
  const { what, subject } = line;
  if (isRefused(line)) return null;
  if (/^(s?\d+)$/.test(subject) && JOBS.includes(what)) return ["jobs", subject];
  return what === "class retry" && subject ? ["classes", subject] : null;
}
