"""What several unit tests start from."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes import FakeService
from integration.runner import Boa
from live import Live, config, prior, profile
from ports import held_port


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Any]:
    """Makes services, and ends them."""
    made: list[Live] = []

    def make(*known: Any, per_hour: float = 2.0, policy: Any = None, **fields: Any) -> Live:
        profiles = known or (profile("halves", work=(1800.0, 1800.0), alpha=0.8),)
        priors = {p.name: prior(p, per_hour) for p in profiles}
        settings = config(tmp_path, priors=priors, **{"budget": 12.0, **fields})
        live = Live(settings, {p.name: p for p in profiles}, policy=policy)
        made.append(live)
        live.settle()
        return live

    yield make
    for live in made:
        live.close()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Boa:
    return Boa(capsys)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeService]:
    """One that answers over HTTP, and where the command line looks for it."""
    service = FakeService(tmp_path / "service")
    monkeypatch.delenv("BOA_TOKEN", raising=False)
    with service.serving() as url:
        monkeypatch.setenv("BOA_SERVER", url)
        yield service


@pytest.fixture
def port() -> Iterator[int]:
    """The test's own, also while nobody listens there."""
    with held_port() as port:
        yield port
