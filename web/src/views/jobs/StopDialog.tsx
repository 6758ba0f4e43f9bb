import { usd, gpus } from "../../format";
import { Confirm } from "../../parts/Dialog";
import { useNow, usePicture } from "../../state/hooks";
import type { SeenJob } from "../../state/live";
import { client } from "../../state/session";
import { costNow, pricesOf } from "./words";

interface StopDialogProps {
  job: SeenJob;
  /** The service has said yes. The picture shows it a moment later. */
  onStopped: (job: SeenJob) => void;
  onClose: () => void;
}

/** Says what becomes of a job that is stopped, and of its money, before it is. */
export function StopDialog({ job, onStopped, onClose }: StopDialogProps) {
  const stop = async () => {
    await client.post(`/jobs/${encodeURIComponent(job.id)}/stop`);
    onStopped(job);
  };
  const { nodes } = usePicture();
  const cost = costNow(job, pricesOf(nodes.values()), useNow());
  const holds = job.width > 0 && job.gpu_type !== null;
  return (
    <Confirm
      title={`Stop job ${job.id} (${job.name})?`}
      action="Stop the job"
      dangerous
      onConfirm={stop}
      onClose={onClose}
    >
      <p>
        It is told to end and has its grace time to write a checkpoint. It does not start again by
        itself.
      </p>
      {holds && (
        <p>Its {gpus(job.width, job.gpu_type)} are then free for other jobs, or given back.</p>
      )}
      <p>
        It has cost <b>{usd(cost)}</b> so far
        {job.left_usd !== null && (
          <>
            ; about <b>{usd(job.left_usd)}</b> more to its end will not be spent
          </>
        )}
        .
      </p>
    </Confirm>
  );
}
