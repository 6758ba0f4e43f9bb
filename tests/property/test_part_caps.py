"""Hard caps of those who share a budget: never crossed at any step, and nobody starves who has
room."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from boa.model.budgets import Budget
from boa.model.cluster import Share
from boa.model.job import JobRecord
from boa.model.workload import GpuType
from boa.scheduler.decide.part_caps import allowances
from boa.scheduler.money.grants import PartCap
from live import Live, config, prior, profile, spec

ONE = profile("one", work=(1800.0,), alpha=0.8)
OTHER = profile("other", work=(1800.0,), alpha=0.8)
THIRD = profile("third", work=(1800.0,), alpha=0.8)
CAPS = {"vision": 3.0, "eve": 1.0}
EVE = Budget(name="eve", max_spend=CAPS["eve"], classes=("one",))
VISION = Budget(name="vision", max_spend=CAPS["vision"], parts=(EVE,), classes=("other",))
LAB = Budget(name="all", per_hour=12.0, parts=(VISION,))
UNDER = {"vision": {"one", "other"}, "eve": {"one"}}
arrivals = st.lists(
    st.tuples(st.floats(0.0, 3600.0), st.sampled_from(("one", "other", "third"))),
    min_size=1,
    max_size=12,
)


class Watched(Live):
    """A service that is looked at after every step."""

    def settle(self) -> None:
        super().settle()
        self.check()

    def check(self) -> None:
        for name, cap in CAPS.items():
            holds = self.loop.state.holds.values()
            held = sum(h.price * h.gpus for h in holds if h.stream in UNDER[name])
            assert held <= cap * (1 + 1e-9), name


@settings(max_examples=10)
@given(history=arrivals, billing=st.sampled_from(("gpu", "node")))
def test_no_part_crosses_its_cap_and_every_job_ends(
    history: list[tuple[float, str]], billing: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        known = {one.name: one for one in (ONE, OTHER, THIRD)}
        priors = {name: prior(one, 2.0) for name, one in known.items()}
        live = Watched(
            config(Path(folder), budget=12.0, billing=billing, sharing=LAB, priors=priors), known
        )
        for wait_s, job_class in history:
            live.advance(wait_s, tick=600.0)
            live.submit(spec(job_class))
            live.check()
        live.finish(5 * 86_400.0)
        live.close()


T4 = GpuType(name="T4", price=0.5, gpus_per_node=4)
V100 = GpuType(name="V100", price=2.0, gpus_per_node=4)
TYPES = {"T4": T4, "V100": V100}
wishes = st.lists(
    st.tuples(
        st.sampled_from(("one", "other", "third")),
        st.sampled_from(("T4", "V100")),
        st.integers(0, 16),
    ),
    min_size=1,
    max_size=20,
)


def made(asked: list[tuple[str, str, int]]) -> tuple[list[JobRecord], dict[str, Share]]:
    jobs = [
        JobRecord(id=str(n), spec=spec(name), submitted_at=float(n), serial=n)
        for n, (name, _, _) in enumerate(asked)
    ]
    wished = {str(n): Share(gpu, width) for n, (_, gpu, width) in enumerate(asked) if width}
    return jobs, wished


@given(asked=wishes, vision=st.floats(0.1, 40.0), eve=st.floats(0.1, 40.0))
def test_what_jobs_are_allowed_is_within_every_cap_and_first_come_first_served(
    asked: list[tuple[str, str, int]], vision: float, eve: float
) -> None:
    jobs, wished = made(asked)
    caps = (
        PartCap(name="vision", most=vision, classes=frozenset({"one", "other"})),
        PartCap(name="eve", most=eve, classes=frozenset({"one"})),
    )
    usable = dict.fromkeys((job.id for job in jobs), ("T4", "V100"))
    found = allowances(caps, jobs, wished, usable, TYPES)
    assert found.keys() == {job.id for job in jobs if job.job_class != "third"}
    by_class = {name: [j for j in jobs if j.job_class == name] for name in ("one", "other")}
    spent = {name: sum(found[j.id].most for j in of) for name, of in by_class.items()}
    assert spent["one"] + spent["other"] <= vision * (1 + 1e-6)
    assert spent["one"] <= eve * (1 + 1e-6)
    for of in by_class.values():
        served = [found[j.id].most > 0 for j in of if j.id in wished]
        assert served == sorted(served, reverse=True), "nobody waits for one that came later"
    total = sum(TYPES[w.gpu].price * w.width for j, w in wished.items() if j in found)
    if total <= min(vision, eve) * (1 - 1e-6):
        assert all(
            most.allows(wished[j].gpu, wished[j].width, TYPES)
            for j, most in found.items()
            if j in wished
        )
