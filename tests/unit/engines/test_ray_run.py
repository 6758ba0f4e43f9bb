"""A run on Ray as the engine sees it: what it does about answers, silence and a Ray that fails.

The cluster here is a stand-in, for what a real one does too seldom to wait for.
"""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from boa._version import __version__
from boa.engines.ray import RayEngine, engine
from boa.engines.ray.run import OVERDUE_S, SLACK_S, UNREACHABLE_S
from boa.model.job import JobSpec, Launcher
from boa.model.runs import Launch, NodeSlots, RunEvent, RunKey

KEY = RunKey("1", 1)


class Calls:
    """An actor: what it was asked, newest last, and what it will answer."""

    def __init__(self, cluster: "Cluster") -> None:
        self.cluster, self.asked = cluster, list[tuple[str, Any]]()

    def __getattr__(self, method: str) -> Any:
        actor = self

        class Method:
            def remote(self, *arguments: Any) -> object:
                ref = object()
                actor.asked.append((method, arguments))
                actor.cluster.refs[ref] = actor
                return ref

        return Method()

    def count(self, method: str) -> int:
        return sum(name == method for name, _ in self.asked)


class Cluster:
    def __init__(self, *_: Any) -> None:
        self.namespace = "boa"
        self.refs: dict[object, Calls] = {}
        self.actors: list[Calls] = []
        self.groups: set[str] = set()
        self.answering: dict[Calls, Any] = {}
        self.down = False
        self.dead: set[str] = set()

    def group(self, name: str, gpu: str, nodes: list[str]) -> str:
        self.groups.add(name)
        return name

    def actor(self, *_: Any) -> Calls:
        if self.down:
            raise RuntimeError("no answer")
        self.actors.append(Calls(self))
        return self.actors[-1]

    def answers(self, refs: Any) -> list[tuple[object, Any]]:
        found = [(ref, self.answering.pop(self.refs[ref], None)) for ref in refs]
        return [(ref, answer) for ref, answer in found if answer is not None]

    def remove(self, name: str, actors: Any) -> None:
        if self.down:
            raise RuntimeError("no answer")
        self.groups.discard(name)

    def sweep(self, known: Any) -> None:
        self.groups &= set(known)

    def placed(self, group: Any) -> float:
        return 0.0

    def is_alive(self, node: str) -> bool:
        return node not in self.dead


class World:
    def __init__(self, root: Path) -> None:
        self.root, self.cluster = root, Cluster()
        self.engine = RayEngine(root, address="", namespace="boa", log_bytes=4096)
        self.engine._cluster = self.cluster  # type: ignore[assignment]

    def start(self, width: int = 1, launcher: Launcher = "workers", address: str = "n") -> None:
        self.engine.start(
            Launch(
                key=KEY,
                spec=JobSpec(job_class="c", run=("train",), launcher=launcher),
                gpu_type="T4",
                slots=(NodeSlots(7, tuple(range(width)), address),),
                checkpoint_dir=str(self.root / "checkpoints"),
            )
        )

    def hear(self, *answers: Any) -> list[RunEvent]:
        """What the actors answer, one by one."""
        self.cluster.answering = dict(zip(self.cluster.actors, answers, strict=False))
        return list(self.engine.poll())

    def up(self, width: int = 1, launcher: Launcher = "workers") -> None:
        self.start(width, launcher)
        self.hear(*[prepared()] * width)
        leads = [actor for actor in self.cluster.actors if actor.count("start")]
        self.cluster.answering = dict.fromkeys(leads, True)
        assert [event.ended for event in self.engine.poll()] == [False]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(engine, "Cluster", Cluster)
    return World(tmp_path)


def prepared() -> dict[str, Any]:
    where = {"node": "n", "ip": "10.0.0.1", "host": os.uname().nodename, "port": 20_000}
    gpus = {"gpus": ["0"], "has_gpus": True, "environment": {}}
    return {"version": __version__, "shared": True, **where, **gpus}


def news(state: str = "up", **other: Any) -> dict[str, Any]:
    empty = {"rank": 0, "first": 0, "output": b"", "outcome": None, "ended_at": 0.0}
    return {**empty, "state": state, **other}


def ended(ago_s: float = 0.0, code: int = 0) -> dict[str, Any]:
    at = {"ended_at": time.time() - ago_s, "ended_ago_s": ago_s}
    return news("ended", outcome=(code, False, ""), **at)


def test_a_run_that_ended_while_nobody_asked_is_told_with_its_age(world: World) -> None:
    world.up()
    (event,) = world.hear(ended(ago_s=500.0))
    assert event.exit_code == 0
    assert 500.0 <= event.age_s < 510.0
    assert RayEngine(world.root, address="", namespace="boa", log_bytes=1).poll()[0].age_s >= 500.0


def test_gpus_are_freed_when_ray_answers_again_though_the_run_is_forgotten(world: World) -> None:
    world.up()
    world.cluster.down = True
    (event,) = world.hear(ended())
    assert (event.ended, event.exit_code) == (True, 0)
    world.engine.forget(KEY)
    assert not world.engine.runs()
    with pytest.raises(RuntimeError, match="no answer"):
        world.engine.poll()
    assert world.cluster.groups
    world.cluster.down = False
    assert world.engine.poll() == []
    assert not world.cluster.groups


def test_what_a_start_that_failed_has_left_is_taken_away(world: World) -> None:
    world.cluster.down = True
    with pytest.raises(RuntimeError):
        world.start()
    assert world.cluster.groups
    world.cluster.down = False
    world.engine.poll()
    assert not world.cluster.groups
    world.start()
    assert world.engine.runs() == [KEY]


def test_a_node_that_ray_does_not_have_gets_no_run_and_neither_does_another(world: World) -> None:
    world.start(address="")
    (event,) = world.engine.poll()
    assert (event.ended, event.node_lost) == (True, True)
    assert event.reason == "lost: node 7 is not in the Ray cluster"
    assert not world.cluster.groups


def test_an_answer_that_was_lost_is_asked_for_again_and_ends_nothing(world: World) -> None:
    from ray.exceptions import ObjectLostError

    world.up()
    (actor,) = world.cluster.actors
    lost = ObjectLostError("0" * 56, None, "")
    assert world.hear(lost) == []
    (run,) = world.engine._runs.values()
    run._members[0].ask_at = 0.0  # a second later
    asked = actor.count("news")
    assert world.engine.poll() == []
    assert actor.count("news") == asked + 1
    assert world.hear(ended())[0].exit_code == 0


def test_an_answer_that_was_lost_with_its_node_is_no_failure_of_the_job(world: World) -> None:
    from ray.exceptions import ObjectLostError

    world.up()
    world.cluster.dead.add("n")
    (event,) = world.hear(ObjectLostError("0" * 56, None, ""))
    assert (event.ended, event.node_lost) == (True, True)


def test_an_actor_that_hangs_is_given_up_but_not_before_it_had_time_to_answer(world: World) -> None:
    world.up()
    (run,) = world.engine._runs.values()
    run._members[0].asked_at -= OVERDUE_S + 1
    assert world.engine.poll() == []
    assert world.hear(news()) == []
    run._members[0].asked_at -= OVERDUE_S + 1
    world.engine.poll()
    assert run._members[0].silent_since is not None
    run._members[0].silent_since -= UNREACHABLE_S + 1
    (event,) = world.engine.poll()
    assert (event.ended, event.node_lost) == (True, True)
    assert not world.cluster.groups


def test_checkpoints_that_a_node_has_seen_are_told_once_each_with_their_age(world: World) -> None:
    world.up(width=2)
    assert world.hear(news(), news(saved_at=0.0)) == []
    at = time.time() - 20.0
    (event,) = world.hear(news(saved_at=at), news(saved_at=at))
    assert (event.saved, event.ended) == (True, False)
    assert 20.0 <= event.saved_age_s < 30.0
    assert world.hear(news(saved_at=at), news(saved_at=at)) == []
    last, end = world.hear(*[ended() | {"saved_at": at + 10.0}] * 2)
    assert (last.saved, end.ended) == (True, True)


def test_a_stop_that_may_have_been_lost_is_said_again_with_the_grace_that_is_left(
    world: World,
) -> None:
    from ray.exceptions import ActorUnavailableError

    world.up()
    (actor,) = world.cluster.actors
    world.engine.stop(KEY, 60.0)
    world.hear(ActorUnavailableError("away", None))
    (run,) = world.engine._runs.values()
    run._members[0].ask_at, run._deadline = 0.0, time.monotonic() + SLACK_S + 20.0
    world.engine.poll()
    world.hear(news())
    graces = [arguments[0] for method, arguments in actor.asked if method == "stop"]
    assert graces[0] == 60.0
    assert 10.0 < graces[1] <= 20.0
    world.hear(news())
    assert actor.count("stop") == 2


def test_actors_that_only_hold_a_gpu_do_not_count_as_killed(world: World) -> None:
    world.up(width=2, launcher="single")
    world.engine.stop(KEY, 0.0)
    (run,) = world.engine._runs.values()
    run._deadline = 0.0  # the end comes as late as can be
    (event,) = world.hear(ended())
    assert event.exit_code == 0


def test_an_answer_that_makes_no_sense_ends_the_run(world: World) -> None:
    world.start()
    (event,) = world.hear({**prepared(), "gpus": None})
    assert event.exit_code is None
    assert event.reason.startswith("lost: ")
    assert not world.cluster.groups


def test_a_service_killed_while_it_starts_a_run_leaves_no_file_with_the_checkpoints(
    world: World,
) -> None:
    world.start()
    assert len(os.listdir(world.root / "checkpoints")) == 1
    RayEngine(world.root, address="", namespace="boa", log_bytes=1)
    assert not os.listdir(world.root / "checkpoints")
