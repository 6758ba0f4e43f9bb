/** What is asked of the simulator: read from the form, and held against what is allowed. */
import { ApiError, wordsOf } from "../../api/client";
import type { Frontier, TraceChoice, WhatIf } from "../../api/types";
import { amount } from "../budget/scale";

export const OWN = "own";
const MOST_BYTES = 8 * 1024 ** 2;
const FOR_THE_REST = 4096;
/** Of a request's bytes: what is not the trace. */

export type Field = "trace" | "policies" | "budgets" | "gpu_types" | "calendar" | "form";
export type Problems = Partial<Record<Field, string>>;

export interface Upload {
  name: string;
  text: string;
}

export interface Question {
  /** The name of a trace; null: the uploaded one. */
  trace: string | null;
  upload: Upload | null;
  /** Why the chosen file cannot be it. */
  uploadProblem?: string | undefined;
  policies: readonly string[];
  /** As typed: amounts with commas between them. */
  budgets: string;
  gpuTypes: readonly string[];
  /** Whether budgets are by the hours of the service's own calendar. */
  byCalendar: boolean;
}

/** One that is being written. */
export interface Draft extends Omit<Question, "budgets"> {
  /** Null: nothing was typed, and those are asked about that say most of the trace. */
  budgets: string | null;
}

/** Amounts with commas between them, or what is wrong with them. */
export function budgetsOf(text: string): { values: number[]; problem: string } {
  const wrong = (problem: string) => ({ values: [], problem });
  const words = text.split(/[,;\s]+/).filter(Boolean);
  if (words.length === 0) return wrong("At least one budget, such as 60, 87, 120.");
  const values: number[] = [];
  for (const word of words) {
    const value = amount(word);
    if (value === null) return wrong(`“${word}” is no amount above 0.`);
    if (values.includes(value)) return wrong(`${word} is there twice.`);
    values.push(value);
  }
  return { values: values.sort((a, b) => a - b), problem: "" };
}

/** Everything that can be seen to be wrong before the service is asked. */
export function problemsOf(question: Question): Problems {
  const found: Problems = {};
  if (question.trace === null && !question.upload) {
    found.trace = question.uploadProblem ?? "Choose a file.";
  }
  if (question.policies.length === 0) found.policies = "Choose at least one policy.";
  if (question.gpuTypes.length === 0) found.gpu_types = "Choose at least one GPU type.";
  const { problem } = budgetsOf(question.budgets);
  if (problem) found.budgets = problem;
  return found;
}

/** What the service is sent. */
export function bodyOf(question: Question): WhatIf {
  const { trace, upload } = question;
  return {
    ...(trace !== null && { trace }),
    ...(trace === null && upload && { trace_file: upload }),
    policies: [...question.policies] as WhatIf["policies"], // as the service named them
    budgets: budgetsOf(question.budgets).values,
    gpu_types: [...question.gpuTypes],
    ...(question.byCalendar && { calendar: OWN }),
  };
}

/** What the service said no with, beside the field that it names. */
export function refusal(error: unknown, upload: Upload | null): Problems {
  const message = wordsOf(error);
  if (!(error instanceof ApiError)) return { form: message };
  if (upload && message.startsWith(upload.name)) return { trace: message }; // and where in it
  return { [fieldOf(error.field)]: message };
}

const FIELDS: readonly Field[] = ["trace", "policies", "budgets", "gpu_types", "calendar"];

/** "budgets[2]" is of the budgets, "trace_file.text" of the trace. */
function fieldOf(name: string | undefined): Field {
  return FIELDS.find((field) => name?.startsWith(field)) ?? "form";
}

/** What a file is as a part of the question. */
export function taken(name: string, text: string): Pick<Question, "upload" | "uploadProblem"> {
  const no = (why: string) => ({ upload: null, uploadProblem: `${name} ${why}` });
  if (text.trim() === "") return no("is empty: a trace has the names of its columns, then jobs.");
  if (!fits(text)) return no("is too large: at most 8 MB.");
  return { upload: { name, text }, uploadProblem: undefined };
}

/** Whether a file fits into a request, where quotes and line ends take two bytes. */
export function fits(text: string, most = MOST_BYTES - FOR_THE_REST): boolean {
  return new Blob([JSON.stringify(text)]).size <= most;
}

/** What the workload can make use of: less than the cheapest keeps up with nothing, more than the
 * fastest buys nothing. */
export type Sensible = Pick<Frontier, "cheapest_per_hour" | "fastest_per_hour">;

const TRIED = 5;
const ABOVE_CHEAPEST = 1.05;
const AROUND = 2.5;

/** Budgets to begin with: of one's own jobs some between the cheapest and the fastest, around today's
 * and with it among them; of other traces what the service says. */
export function firstBudgets(
  trace: TraceChoice | undefined,
  sensible: Sensible | null,
  today: number | null,
): string {
  if (!trace) return "";
  if (trace.name !== OWN || !sensible || !today) return trace.budgets.join(", ");
  const least = sensible.cheapest_per_hour * ABOVE_CHEAPEST;
  const most = Math.max(sensible.fastest_per_hour, least * 1.2);
  const inside = (each: number) => Math.min(Math.max(each, least), most);
  const [low, high] = [inside(today / AROUND), inside(today * AROUND)];
  const [from, to] = low < high ? [low, high] : [least, most];
  const spread = Array.from(
    { length: TRIED },
    (_, n) => from * (to / from) ** (n / (TRIED - 1)),
  ).map(round);
  return [...new Set(withToday(spread, today))].sort((a, b) => a - b).join(", ");
}

/** Today's in place of the one that is nearest to it, or beyond them where it is. */
function withToday(spread: readonly number[], today: number): number[] {
  if (today < Math.min(...spread) || today > Math.max(...spread)) return [...spread, today];
  const away = spread.map((each) => Math.abs(Math.log(each / today)));
  const nearest = away.indexOf(Math.min(...away));
  return spread.map((each, n) => (n === nearest ? today : each));
}

/** To two digits that count, three where it begins with a 1: an amount that somebody would type. */
function round(each: number): number {
  const digits = String(each)
    .replace(/^[0.]+/, "")
    .startsWith("1")
    ? 3
    : 2;
  return Number(each.toPrecision(digits));
}

/** One's own jobs first: they say most. */
export function ownFirst(traces: readonly TraceChoice[]): TraceChoice[] {
  return [...traces].sort((a, b) => Number(b.name === OWN) - Number(a.name === OWN));
}

/** One's own jobs on all that they run on; others on one type, which every policy can do. */
export function firstTypes(trace: TraceChoice | undefined): string[] {
  if (!trace) return [];
  return trace.name === OWN ? trace.gpu_types : trace.gpu_types.slice(0, 1);
}
