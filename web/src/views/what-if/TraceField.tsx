import { wordsOf } from "../../api/client";
import type { TraceChoice } from "../../api/types";
import { duration, plural } from "../../format";
import { FieldProblem } from "./FieldProblem";
import { firstTypes, OWN, taken, type Draft, type Question } from "./question";

interface TraceFieldProps {
  traces: readonly TraceChoice[];
  question: Question;
  problem: string | undefined;
  change: (part: Partial<Draft>) => void;
}

/** Which jobs are simulated: what the service has seen, a made-up day, or a file. */
export function TraceField({ traces, question, problem, change }: TraceFieldProps) {
  const pick = (trace: TraceChoice) =>
    change({
      trace: trace.name,
      budgets: null,
      gpuTypes: firstTypes(trace),
    });
  const upload = () => change({ trace: null, gpuTypes: firstTypes(traces.at(-1)) });
  const ofFile = question.trace === null ? question.uploadProblem : undefined;
  return (
    <fieldset aria-describedby="trace-problem">
      <legend>Trace: which jobs, and when they come</legend>
      {traces.map((trace) => (
        <label key={trace.name} className="check trace">
          <input
            type="radio"
            name="trace"
            checked={question.trace === trace.name}
            onChange={() => pick(trace)}
          />
          <span>
            <b>{trace.name === OWN ? "own: what this service has seen" : trace.name}</b>{" "}
            <span className="faint">
              · {plural(trace.jobs, "job")} in {duration(trace.hours * 3600)}
            </span>
            {question.trace === trace.name && <span className="about">{trace.about}</span>}
          </span>
        </label>
      ))}
      <label className="check trace">
        <input type="radio" name="trace" checked={question.trace === null} onChange={upload} />
        <b>a file</b>
        <span className="faint">· CSV with a line per job</span>
      </label>
      {question.trace === null && <FileField change={change} upload={question.upload?.name} />}
      <FieldProblem id="trace-problem" problem={problem ?? ofFile} />
    </fieldset>
  );
}

function FileField({
  change,
  upload,
}: {
  change: (part: Partial<Draft>) => void;
  upload: string | undefined;
}) {
  const take = async (file: File | undefined) => {
    if (file) change(taken(file.name, await file.text()));
  };
  const failed = (error: unknown) => change({ upload: null, uploadProblem: wordsOf(error) });
  return (
    <div className="about">
      <input
        type="file"
        accept=".csv,text/csv,text/plain"
        aria-label="Trace file"
        aria-describedby="trace-problem"
        onChange={(event) => {
          take(event.target.files?.[0]).catch(failed);
        }}
      />
      <p className="faint small">
        {upload ? `${upload} is read. ` : ""}Columns as boa simulate takes them: name, application,
        arrival_s and, where known, gpus; traces of Sia, Pollux and Rubick are read too. Say below
        at which budgets.
      </p>
    </div>
  );
}
