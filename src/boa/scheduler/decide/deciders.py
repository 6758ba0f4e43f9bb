"""The decider that suits a policy."""

from collections.abc import Mapping
from typing import Any

from boa.model.cluster import Policy
from boa.model.workload import GpuType
from boa.scheduler.decide.at_once import AtOnce
from boa.scheduler.decide.by_job import ByJob
from boa.scheduler.decide.decider import Decider
from boa.scheduler.learn.beliefs import Beliefs
from boa.units import GpuName, Seconds


def decider_for(
    policy: Policy,
    *,
    gpu_types: Mapping[GpuName, GpuType],
    beliefs: Beliefs,
    round_s: Seconds,
    **more: Any,
) -> Decider:
    """`more`: fields of a decider that are not as by default."""
    kind = ByJob if policy.by_job else AtOnce
    return kind(policy=policy, gpu_types=gpu_types, beliefs=beliefs, round_s=round_s, **more)
