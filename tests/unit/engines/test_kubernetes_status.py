"""What is made of what pods say of themselves, and of the lines of their logs."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.engines.kubernetes.frames import LONGEST, Frames, Unframed
from boa.engines.kubernetes.marker import Marker
from boa.engines.kubernetes.member import Member
from boa.engines.kubernetes.names import Part
from boa.engines.kubernetes.placing import given_up, watch_broken
from boa.engines.kubernetes.status import PodState, read


def pod(status: dict[str, Any], *, node: str = "n1", **metadata: Any) -> PodState:
    known = {"name": "p", "uid": "u", **metadata}
    return read({"metadata": known, "spec": {"nodeName": node} if node else {}, "status": status})


def container(name: str = "job", **state: Any) -> dict[str, Any]:
    return {"name": name, "state": state}


def ended(message: str = "", code: int = 0, reason: str = "Error") -> dict[str, Any]:
    terminated = {"exitCode": code, "reason": reason, "finishedAt": "2026-01-01T00:00:00Z"}
    return {
        "phase": "Failed" if code else "Succeeded",
        "containerStatuses": [container(terminated={**terminated, "message": message})],
    }


UNSCHEDULABLE = {
    "phase": "Pending",
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
        }
    ],
}
PULLING = {
    "phase": "Pending",
    "containerStatuses": [
        container(waiting={"reason": "ImagePullBackOff", "message": 'Back-off pulling "x:1"'})
    ],
}
CREATING = {
    "phase": "Pending",
    "containerStatuses": [container(waiting={"reason": "ContainerCreating"})],
}
RUNNING = {
    "phase": "Running",
    "podIP": "10.0.0.1",
    "containerStatuses": [container(running={"startedAt": "2026-01-01T00:00:00Z"})],
}


def test_stages_follow_from_phase_node_and_containers() -> None:
    assert pod({}, node="").stage == "pending"
    assert pod(UNSCHEDULABLE, node="").stage == "pending"
    assert pod(CREATING).stage == "placed"
    assert (pod(RUNNING).stage, pod(RUNNING).going) == ("running", True)
    assert pod(ended()).stage == "over"
    rejected = {"phase": "Failed", "reason": "OutOfnvidia.com/gpu", "message": "no"}
    assert pod(rejected).stage == "rejected"
    assert pod({"phase": "Failed", "reason": "Evicted", "message": "disk"}).stage == "over"


def test_what_runs_beside_the_job_keeps_the_pod_from_being_over() -> None:
    beside = container("beside", running={"startedAt": ""})
    status = {"phase": "Running", "containerStatuses": [*ended()["containerStatuses"], beside]}
    state = pod(status)
    assert (state.stage, state.left_behind, state.going) == ("running", True, False)


def test_the_supervisors_word_is_the_outcome() -> None:
    told = {
        "code": 3,
        "stopped": False,
        "lost": False,
        "reason": "worker 1: exit code 3",
        "up": True,
        "at": 12.5,
        "seen": {"0": 5, "1": 7},
    }
    outcome = pod(ended(json.dumps(told), 3)).outcome
    assert outcome is not None
    assert (outcome.code, outcome.reason, outcome.told) == (3, "worker 1: exit code 3", True)
    assert outcome.seen == {0: 5, 1: 7}


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (ended("", 137, "OOMKilled"), -9, "killed: out of memory (OOMKilled)"),
        (ended("", 137), -9, "killed by signal 9"),
        (
            ended('exec: "python3": not found', 128, "StartError"),
            None,
            'its image cannot run python3, which the supervisor of jobs needs: exec: "python3": '
            "not found",
        ),
        (ended("its image has Python 3.8", 1), None, "lost: its image has Python 3.8"),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."},
            None,
            "lost: Evicted: The node was low on memory.",
        ),
    ],
)
def test_without_the_supervisors_word_the_kubelets_is_taken(
    status: dict[str, Any], code: int | None, reason: str
) -> None:
    outcome = pod(status).outcome
    assert outcome is not None
    assert (outcome.code, outcome.reason, outcome.told) == (code, reason, False)


def test_odd_annotations_are_no_run() -> None:
    for text in ("", "no json", "[]", "1"):
        state = pod(RUNNING, annotations={"boa-constrictor.dev/launch": text})
        assert (state.tag, dict(state.about)) == ("", {})


# Giving up


def member(status: dict[str, Any] | None, *, node: str = "n1", refused: str = "") -> Member:
    part = Part(name="boa-7-1-0", node="n1", label="0", gpus=2, ranks=(0, 1))
    found = Member(part, refused=refused)
    found.pod = None if status is None else pod(status, node=node)
    watch_broken(found, 0.0)
    return found


def why(*members: Member, now: float = 300.0) -> tuple[str, bool] | None:
    marker = Marker(gpu_type="T4", image="x:1")
    found = given_up(marker, members, now, waited_s=now, placed_s=300.0)
    return None if found is None else (found.reason, found.by_job)


def test_a_gang_waits_for_its_time_and_then_says_what_the_scheduler_says() -> None:
    late = member(UNSCHEDULABLE, node="")
    assert why(member(RUNNING), late, now=299.0) is None
    found = why(member(RUNNING), late)
    assert found is not None
    assert found[0] == (
        "4 T4 GPUs could not be had within 300 s: pod boa-7-1-0 for node n1: 0/2 nodes are "
        "available: 2 Insufficient nvidia.com/gpu."
    )
    assert not found[1], "no fault of the job's"


def test_a_pod_without_an_address_is_waited_for_and_then_named() -> None:
    found = why(member(RUNNING), member(RUNNING))
    assert found is not None
    assert found[0].endswith("a pod of the run has no address")


def test_a_quota_is_named() -> None:
    found = why(member(None, refused='pods "x" is forbidden: exceeded quota: few'))
    assert found is not None
    assert found[0].endswith("exceeded quota: few")
    assert not found[1]


def test_an_image_that_is_not_found_is_given_up_sooner_and_is_the_jobs_fault() -> None:
    assert why(member(PULLING), now=59.0) is None
    reason = 'image x:1 cannot be had on node n1: ImagePullBackOff: Back-off pulling "x:1"'
    assert why(member(PULLING), now=60.0) == (reason, True)


def test_a_name_that_is_none_is_given_up_at_once() -> None:
    waiting = {"reason": "InvalidImageName", "message": "couldn't parse"}
    found = why(member({"containerStatuses": [container(waiting=waiting)]}), now=0.0)
    assert found is not None
    assert found[1]


# Lines


class Said(Frames):
    """Where nobody listens."""

    def __init__(self, rank: int, said: list[bytes]) -> None:
        super().__init__(rank)
        self._put = said.append  # type: ignore[assignment, method-assign]


PIECES = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.one_of(
            st.binary(max_size=30),
            st.text("a\n", max_size=30).map(str.encode),
            st.integers(LONGEST - 2, 2 * LONGEST + 2).map(lambda n: b"x" * n),
        ),
    ),
    max_size=12,
)


@given(printed=PIECES, cut=st.integers(1, 5000))
def test_output_of_several_workers_is_told_apart_to_the_byte(
    printed: list[tuple[int, bytes]], cut: int
) -> None:
    said: list[bytes] = []
    workers = [Said(0, said), Said(1, said)]
    for rank, data in printed:
        workers[rank].write(data)
    stream = b"!up\n" + b"".join(said) + b"rpc error: code = NotFound\n"
    reader, heard = Unframed(), [b"", b""]
    for at in range(0, len(stream), cut):
        for rank, first, data in reader.feed(stream[at : at + cut]):
            assert first == len(heard[rank])
            heard[rank] += data
    assert heard == [b"".join(d for r, d in printed if r == rank) for rank in (0, 1)]
    assert reader.up
    assert [worker.seen for worker in workers] == list(map(len, heard))
