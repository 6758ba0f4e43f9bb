import { useEffect, useLayoutEffect, useRef, useState } from "react";

import { asError, wordsOf } from "../../api/client";
import { download } from "../../charts/export";
import { plural } from "../../format";
import { Card } from "../../parts/basics";
import { useLookedAt } from "../../state/attention";
import { usePicture } from "../../state/hooks";
import { client } from "../../state/session";
import { LogBuffer } from "./logBuffer";
import { followLog, wholeLog, type LogPlace } from "./logStream";

const DRAW_MS = 120;
const NEAR_END_PX = 24;

interface Shown {
  text: string;
  count: number;
  dropped: number;
}

type Status = "following" | "waiting" | "over";

/** What a worker printed, as it prints it. */
export function Log({ job, workers, over }: { job: string; workers: number; over: boolean }) {
  const [rank, setRank] = useState(0);
  const [paused, setPaused] = useState(false);
  const [wrap, setWrap] = useState(false);
  const [problem, setProblem] = useState("");
  const save = () => {
    setProblem("");
    wholeLog(client, job, rank).then(
      (log) => download(`job-${job}-worker-${rank}.log`, "text/plain", log),
      (error: unknown) => setProblem(wordsOf(error)),
    );
  };
  const tools = (
    <>
      {workers > 1 && <WorkerSelect workers={workers} rank={rank} onRank={setRank} />}
      <label className="check">
        <input type="checkbox" checked={wrap} onChange={(event) => setWrap(event.target.checked)} />
        Wrap lines
      </label>
      {!over && (
        <button type="button" onClick={() => setPaused(!paused)}>
          {paused ? "Follow log" : "Pause log"}
        </button>
      )}
      <button type="button" onClick={save}>
        Download whole log
      </button>
    </>
  );
  return (
    <Card title="Log" tools={tools}>
      {problem && (
        <p className="bad" role="alert">
          {problem}
        </p>
      )}
      <Tail key={rank} job={job} rank={rank} over={over} paused={paused && !over} wrap={wrap} />
    </Card>
  );
}

interface WorkerSelectProps {
  workers: number;
  rank: number;
  onRank: (rank: number) => void;
}

function WorkerSelect({ workers, rank, onRank }: WorkerSelectProps) {
  return (
    <select
      aria-label="Worker"
      value={rank}
      onChange={(event) => onRank(Number(event.target.value))}
    >
      {Array.from({ length: workers }, (_, each) => (
        <option key={each} value={each}>
          worker {each}
        </option>
      ))}
    </select>
  );
}

interface TailProps {
  job: string;
  rank: number;
  over: boolean;
  paused: boolean;
  wrap: boolean;
}

function Tail({ job, rank, over, paused, wrap }: TailProps) {
  const { shown, status, error } = useLog(job, rank, over, paused);
  const { box, atEnd, toEnd, look } = useEnd(shown, wrap);
  if (error) return <p className="faint">{error.message}</p>;
  return (
    <div className="log">
      <pre
        ref={box}
        className={wrap ? "wrap" : ""}
        // Scrolls, so the keyboard must be able to get into it.
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        tabIndex={0}
        aria-label={`Log of worker ${rank}`}
        onScroll={look}
      >
        {shown.text || <span className="faint">Nothing printed yet.</span>}
      </pre>
      <p className="faint small-print row spread">
        <span>{statusWords(status, paused, shown)}</span>
        {!atEnd && (
          <button type="button" className="small" onClick={toEnd}>
            To the end ↓
          </button>
        )}
      </p>
    </div>
  );
}

const BY_HAND = ["wheel", "touchmove", "keydown", "pointerdown"] as const;

/** Stays at the end as text comes in, until somebody scrolls up: other things move it too. */
function useEnd(shown: Shown, wrap: boolean) {
  const box = useRef<HTMLPreElement>(null);
  const byHand = useRef(false);
  const [atEnd, setAtEnd] = useState(true);
  useEffect(() => {
    const element = box.current;
    const note = () => (byHand.current = true);
    for (const kind of BY_HAND) element?.addEventListener(kind, note, { passive: true });
    return () => {
      for (const kind of BY_HAND) element?.removeEventListener(kind, note);
    };
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    if (element && atEnd) element.scrollTop = element.scrollHeight;
  }, [shown, atEnd, wrap]);
  const look = () => {
    const element = box.current;
    if (!element) return;
    const left = element.scrollHeight - element.scrollTop - element.clientHeight;
    if (left < NEAR_END_PX) setAtEnd(true);
    else if (byHand.current) setAtEnd(false);
    else if (atEnd) element.scrollTop = element.scrollHeight;
  };
  const toEnd = () => {
    byHand.current = false;
    setAtEnd(true);
  };
  return { box, atEnd, toEnd, look };
}

function statusWords(status: Status, paused: boolean, { count, dropped }: Shown): string {
  const lines = `${dropped > 0 ? "the last " : ""}${plural(count, "line")}`;
  if (status === "over") return `${lines} · the job has ended`;
  if (paused) return `${lines} · paused`;
  if (status === "waiting") return `${lines} · the service does not answer; it goes on from here`;
  return `${lines} · live`;
}

function useLog(job: string, rank: number, over: boolean, paused: boolean) {
  const gone = usePicture().connection === "gone";
  const seen = useLookedAt();
  const [shown, setShown] = useState<Shown>({ text: "", count: 0, dropped: 0 });
  const [status, setStatus] = useState<Status>("following");
  const [error, setError] = useState<Error | null>(null);
  const kept = useRef<{ buffer: LogBuffer; place: LogPlace } | null>(null);
  const ended = useRef(over);
  useEffect(() => {
    ended.current = over;
  }, [over]);
  useEffect(() => {
    if (paused || gone || !seen) return;
    kept.current ??= { buffer: new LogBuffer(), place: { job, rank, skip: null } };
    const { buffer, place } = kept.current;
    const running = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const draw = () => {
      timer = undefined;
      setShown({ text: buffer.text(), count: buffer.count, dropped: buffer.dropped });
    };
    const text = (piece: string) => {
      buffer.add(piece);
      timer ??= setTimeout(draw, DRAW_MS);
    };
    const waiting = (away: boolean) => setStatus(away ? "waiting" : "following");
    const to = { text, waiting, anew: () => buffer.clear(), ended: () => ended.current };
    followLog(client, place, running.signal, to).then(
      () => {
        if (!running.signal.aborted) setStatus("over");
      },
      (problem: unknown) => setError(asError(problem)),
    );
    return () => {
      running.abort();
      if (timer === undefined) return;
      clearTimeout(timer);
      draw(); // it is there, and nothing may come for long
    };
  }, [job, rank, paused, gone, seen]);
  return { shown, status: gone ? "waiting" : status, error } as const;
}
