"""The library of training scripts. Nothing but the standard library, and harmless anywhere.

    from boa import train

    job = train.context()                      # from here on SIGTERM only asks to stop
    at = train.resume()                        # where the newest checkpoint was; zeros without one
    for epoch in train.epochs():
        for batch in batches(epoch, after=at.step):
            loss = step(batch)
            train.report(samples=len(batch), loss=loss)
            if train.stop_requested():
                with train.new_checkpoint() as folder:
                    save(folder / "model.npz")
                sys.exit(0)

Outside of a BOA job the same script runs unchanged: reports go nowhere, and checkpoints too unless
BOA_CHECKPOINT_DIR names a folder.
"""

from boa.train.checkpoints import Progress
from boa.train.job import JobContext
from boa.train.session import (
    context,
    done,
    epoch,
    epochs,
    latest_checkpoint,
    new_checkpoint,
    report,
    resume,
    saved,
    stop_requested,
    total,
)
from boa.train.trackers import forward, watch

__all__ = [
    "JobContext",
    "Progress",
    "context",
    "done",
    "epoch",
    "epochs",
    "forward",
    "latest_checkpoint",
    "new_checkpoint",
    "report",
    "resume",
    "saved",
    "stop_requested",
    "total",
]

watch()  # what the script logs to trackers; in a job only
