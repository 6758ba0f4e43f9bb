"""Between which batch sizes a script lets a training run, and the tuner within them."""

from boa.goodput.tuning import Limits
from boa.train import session
from boa.train.torch.tuner import Tuner


def limits_of(
    batch_size: int, max_batch: int | None, local: tuple[int, int] | None, world: int
) -> Limits:
    if batch_size < 1:
        raise ValueError(f"batch_size: got {batch_size}; expected at least 1")
    if max_batch is not None and max_batch < batch_size:
        raise ValueError(f"max_batch: got {max_batch}; expected at least batch_size, {batch_size}")
    least, most = local or (1, batch_size)
    if not 1 <= least <= most:
        raise ValueError(
            f"local_batch: got {local}; expected (least, most) with 1 <= least <= most"
        )
    if max_batch is not None and max_batch < world:
        raise ValueError(
            f"max_batch: got {max_batch} on {world} processes; expected a sample for each, "
            f"or `gpus: {{max: {max_batch}}}` in the job's file"
        )
    if max_batch is None:
        return Limits(base_batch=batch_size, max_batch=batch_size, min_local=1, max_local=most)
    return Limits(
        base_batch=batch_size,
        max_batch=max_batch,
        min_local=least,
        max_local=most,
        split_alone=False,
    )


def tuner_of(limits: Limits) -> Tuner:
    return Tuner(
        base_batch=limits.base_batch,
        max_batch=limits.max_batch,
        local_batch=(limits.min_local, limits.max_local),
        gpu_type=session.context().gpu_type,
    )
