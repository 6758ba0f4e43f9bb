import type { JobState } from "../../api/types";
import { usd, gpus } from "../../format";
import { Confirm } from "../../parts/Dialog";
import { useNow, usePicture } from "../../state/hooks";
import { hasEnded, type SeenJob } from "../../state/live";
import { client } from "../../state/session";
import { costNow, leftUsdNow, pricesOf } from "./words";

interface StopDialogProps {
  job: SeenJob;
  /** The service has said yes. The picture shows it a moment later. */
  onStopped: (job: SeenJob) => void;
  onClose: () => void;
}

/** Says what becomes of a job that is stopped, and of its money, before it is. */
export function StopDialog({ job: opened, onStopped, onClose }: StopDialogProps) {
  const { jobs, ended, nodes } = usePicture();
  const now = useNow();
  const job = jobs.get(opened.id) ?? ended.get(opened.id) ?? opened;
  const stop = async () => {
    await client.post(`/jobs/${encodeURIComponent(job.id)}/stop`);
    onStopped(job);
  };
  const over = hasEnded(job.state);
  const cost = costNow(job, pricesOf(nodes), now);
  return (
    <Confirm
      title={over ? `Job ${job.id} (${job.name}) has ended` : `Stop job ${job.id} (${job.name})?`}
      action={over ? null : "Stop the job"}
      dangerous
      onConfirm={stop}
      onClose={onClose}
    >
      {over ? (
        <p>
          It {ENDS[job.state] ?? "has ended"} meanwhile: there is nothing to stop. It has cost{" "}
          <b>{usd(job.cost_usd)}</b> in all.
        </p>
      ) : (
        <Consequences job={job} cost={cost} rest={leftUsdNow(job, now)} />
      )}
    </Confirm>
  );
}

const ENDS: Partial<Record<JobState, string>> = {
  succeeded: "has succeeded",
  failed: "has failed",
  stopped: "was stopped",
};

interface ConsequencesProps {
  job: SeenJob;
  cost: number;
  rest: number | null;
}

function Consequences({ job, cost, rest }: ConsequencesProps) {
  const holds = job.width > 0 && job.gpu_type !== null;
  return (
    <>
      <p>
        It is told to end and has its grace time to write a checkpoint. It does not start again by
        itself.
      </p>
      {holds && (
        <p>Its {gpus(job.width, job.gpu_type)} are then free for other jobs, or given back.</p>
      )}
      <p>
        It has cost <b>{usd(cost)}</b> so far
        {rest !== null && (
          <>
            ; about <b>{usd(rest)}</b> more to its end will not be spent
          </>
        )}
        .
      </p>
    </>
  );
}
