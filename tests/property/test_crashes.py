"""The service is killed before or after any call that it makes; it comes back and goes on."""

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boa.clouds.faulty import Faults, FaultyCloud
from boa.scheduler.money.ledger import Totals, bill
from live import Live, config, prior, profile, spec

SHORT = profile("short", work=(300.0, 600.0), alpha=0.7, rescale_s=20.0, widest=8)
DEEP = profile("deep", work=(2400.0,), alpha=0.9, rescale_s=40.0, widest=8)
CALLS = {"commit": "store", "start": "engine", "stop": "engine", "forget": "engine"} | {
    "rent": "cloud",
    "release": "cloud",
}


class Crash(BaseException):
    """Nothing of the service's own may catch this: it is a SIGKILL."""


class Mortal:
    """Passes every call on, and dies at one of them: before it has any effect, or after."""

    def __init__(self, real: Any, fuse: "Fuse") -> None:
        self._real, self._fuse = real, fuse

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if name not in CALLS:
            return found

        def call(*given: Any, **named: Any) -> Any:
            dies = self._fuse.burn()
            if dies == "before":
                raise Crash
            answer = found(*given, **named)
            if dies == "after":
                raise Crash
            return answer

        return call


class Fuse:
    def __init__(self, deaths: list[tuple[int, bool]]) -> None:
        self._deaths, self._left = list(deaths), 0
        self.crashes = 0
        self._next()

    def _next(self) -> None:
        self._left, self._after = self._deaths.pop(0) if self._deaths else (-1, False)

    def burn(self) -> str:
        if self._left < 0:
            return ""
        if self._left > 0:
            self._left -= 1
            return ""
        how = "after" if self._after else "before"
        self.crashes += 1
        self._next()
        return how


class MortalLive(Live):
    def __init__(self, folder: Path, fuse: Fuse, vanish: float) -> None:
        self._fuse, self._faults = fuse, Faults(seed=3, vanish=vanish, vanish_within_s=3000.0)
        known = {"short": SHORT, "deep": DEEP}
        priors = {name: prior(p, 4.0) for name, p in known.items()}
        super().__init__(config(folder, budget=12.0, priors=priors, keep_warm_s=120.0), known)
        self.mortal()

    def mortal(self) -> None:
        loop, actor = self.loop, self.loop.actor
        loop.store = Mortal(self.store, self._fuse)
        actor._engine = Mortal(self.engine, self._fuse)
        assert self.cloud is not None
        faulty = FaultyCloud(self.cloud, self.clock, self._faults)
        actor._cloud = Mortal(faulty, self._fuse)

    def survive(self, do: Any) -> Any:
        """Do something; if the service dies of it, start it again."""
        for _ in range(50):
            try:
                return do()
            except Crash:
                self.restart()
                do = self.settle
        raise AssertionError("it dies for ever")

    def restart(self) -> None:
        assert self.store is not None
        self.store.close()
        self.loop = self._begin()
        self.mortal()


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
@given(
    deaths=st.lists(st.tuples(st.integers(0, 25), st.booleans()), min_size=1, max_size=8),
    jobs=st.lists(st.sampled_from(["short", "deep"]), min_size=1, max_size=5),
    gap=st.sampled_from([0.0, 60.0, 500.0]),
    vanish=st.sampled_from([0.0, 0.5]),
)
def test_a_crash_at_any_call_loses_nothing_and_does_nothing_twice(
    deaths: list[tuple[int, bool]], jobs: list[str], gap: float, vanish: float
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        live = MortalLive(Path(folder), Fuse(deaths), vanish)
        answered = []
        for name in jobs:
            asked = live.loop.submit(spec(name, epochs=2 if name == "short" else 1))
            live.survive(live.settle)
            if asked.done() and not asked.exception():
                answered.append(asked.result().id)
            live.survive(lambda: live.advance(gap))
        while live.loop.snapshot.jobs:
            live.survive(lambda: live.advance(400.0))
        live.survive(lambda: live.advance(400.0))
        assert live.store is not None
        stored = live.store.jobs(limit=1000)
        assert set(answered) <= {job.id for job in stored}, "a job that was taken got lost"
        assert all(job.state == "succeeded" for job in stored)
        starts = Counter((key.job, key.attempt) for key in live.engine.started)
        assert set(starts.values()) <= {1}, "a run was started twice"
        counted = [1 + job.rescalings + job.restarts for job in stored]
        assert counted == [job.attempts for job in stored], "a start is of one kind"
        failures = sum(job.restarts for job in stored)
        assert vanish or not failures, "a crash of ours is no failure of theirs"
        assert all(node.gone_at is not None for node in live.cloud.nodes()), "a forgotten node"  # type: ignore[union-attr]
        _check_books(live)
        live.close()


def _check_books(live: Live) -> None:
    assert live.store is not None
    saved = live.store.load()
    nodes = live.store.nodes_between(0.0, float("inf"))
    holds = live.store.holds_between(0.0, float("inf"))
    assert not saved.holds
    assert not saved.nodes
    whole = bill(nodes, holds, 0.0, float("inf"))
    kept = Totals.from_document(saved.meta.get("totals", Totals().as_document()))
    assert abs(kept.total - whole.total) < 1e-6
    assert abs(kept.jobs - whole.jobs) < 1e-6
    rented = {node.token: node for node in nodes if node.billed_from is not None}
    for listed in live.cloud.nodes():  # type: ignore[union-attr]
        assert listed.gone_at is not None
        if listed.gone_at > listed.billed_from:
            assert listed.token in rented, "a node was paid for that is not in the books"
