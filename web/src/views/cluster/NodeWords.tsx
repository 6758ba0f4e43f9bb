import type { JobRow, Node } from "../../api/types";
import { colorOfJob } from "../../charts/colors";
import { clock, duration, plural, usdPerHour } from "../../format";
import { useNow } from "../../state/hooks";
import { since, stateWords } from "./model";

const MOST_JOBS = 6;

interface NodeWordsProps {
  node: Node;
  gpu: number;
  job: string | null;
  jobs: ReadonlyMap<string, JobRow>;
  place: React.CSSProperties;
}

/** All there is to say of the node that one points at. */
export function NodeWords({ node, gpu, job, jobs, place }: NodeWordsProps) {
  const now = useNow();
  const began = since(node);
  const waits = node.state === "requested" ? `booting: for job ${job}` : `job ${job}`;
  return (
    <div className="reading cells-reading" style={place} role="status">
      <div>
        <b>Node {node.id}</b> <span className={`badge ${node.state}`}>{stateWords(node)}</span>
      </div>
      <div>
        GPU {gpu + 1} of {node.gpus}: <b>{job === null ? freeWords(node) : waits}</b>
        {job !== null && ` ${jobs.get(job)?.name ?? ""} (Enter or click opens it)`}
      </div>
      {node.held.length > 1 && <Holders node={node} />}
      <div className="faint">
        {`${node.gpus}×${node.gpu_type}, ${usdPerHour(node.price_per_hour)}`}
        {node.billed_from === null && ", not charged yet"}
      </div>
      <div className="faint">
        since {clock(began)}
        {now > began && ` (${duration(now - began)})`}
        {node.address && `, at ${node.address}`}
      </div>
      {node.empty_since !== null && !node.why && (
        <div className="faint">{emptyWords(node.empty_since, now)}</div>
      )}
      {node.why && <div>{node.why}</div>}
    </div>
  );
}

function Holders({ node }: { node: Node }) {
  const more = node.held.length - MOST_JOBS;
  return (
    <div>
      {node.held.slice(0, MOST_JOBS).map(({ job, gpus }) => (
        <div key={job}>
          <span className="dot" style={{ background: colorOfJob(job) }} /> job {job}:{" "}
          {plural(gpus, "GPU")}
        </div>
      ))}
      {more > 0 && <div>and {plural(more, "more job")}</div>}
    </div>
  );
}

function freeWords(node: Node): string {
  if (node.state === "requested") return "booting";
  if (node.state === "releasing") return "leaves";
  return "idle";
}

/** How long empty nodes are kept warm is the service's to know. */
export function emptyWords(emptySince: number, now: number): string {
  const passed = now > emptySince ? ` (${duration(now - emptySince)})` : "";
  return `empty since ${clock(emptySince)}${passed}; given back unless a job needs it soon`;
}
