"""A PyTorch example on pods: rescaled from one node to two and back, its loss as without."""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from boa.engines.kubernetes.names import GO
from boa.model.runs import RunKey
from kube.cluster import Cluster
from kube_runs import KubeRuns
from kube_torch import template
from local_runs import until

pytestmark = pytest.mark.kubernetes

EXAMPLE = "train_ema.py"
"""All ranks evaluate it together, so that the error of every epoch can be compared."""
FOREVER = "100000"
ENV = {"OMP_NUM_THREADS": "1"}
ROUNDING = 2e-4
"""How far printed errors may be apart: sums over ranks are rounded in another order."""
EPOCH = re.compile(r"epoch (\d+): error ([\d.]+)")
Errors = dict[int, float]


class Training:
    """One job of the example's, attempt by attempt on the same checkpoint."""

    def __init__(self, runs: KubeRuns, examples: Path) -> None:
        self.runs, self.examples = runs, examples
        self.attempt = 0

    def start(self, *nodes: int, epochs: str = FOREVER) -> RunKey:
        """One rank on each of them."""
        self.attempt += 1
        return self.runs.start(
            *(sys.executable, EXAMPLE, "--epochs", epochs),
            workdir=str(self.examples),
            env=ENV,
            attempt=self.attempt,
            slots=tuple((node, 1) for node in nodes),
        )

    def errors(self) -> Errors:
        """By epoch, of all attempts so far."""
        logs = [self.runs.log(RunKey("1", attempt + 1)) for attempt in range(self.attempt)]
        return {int(epoch): float(error) for log in logs for epoch, error in EPOCH.findall(log)}

    def until_further(self, key: RunKey, epochs: int) -> None:
        """Than it was, by so many epochs."""
        before = len(self.errors())

        def there() -> bool:
            ended = self.runs.told(key, ended=True)
            assert ended is None, f"{ended}\n{self.runs.log(key)}"
            return len(self.errors()) >= before + epochs

        until(there)

    def stop(self, key: RunKey) -> None:
        self.runs.engine.stop(key, 60.0)
        end = self.runs.end(key)
        assert (end.exit_code, end.stopped) == (0, True), f"{end}\n{self.runs.log(key)}"


@pytest.fixture
def runs(real_kube: Cluster, tmp_path: Path) -> Iterator[KubeRuns]:
    """On two real nodes."""
    runs = KubeRuns(tmp_path, real_kube, list(real_kube.nodes), pod_template=template(tmp_path))
    yield runs
    runs.close()


def test_an_example_rescaled_from_one_pod_to_two_and_back_has_the_loss_of_none(
    runs: KubeRuns, examples: Path
) -> None:
    training = Training(runs, examples)
    alone = training.start(0)
    training.until_further(alone, 2)
    training.stop(alone)
    both = training.start(0, 1)
    training.until_further(both, 2)
    _assert_on_two_nodes([runs.pod(both, node) for node in (0, 1)], runs.nodes)
    training.stop(both)
    last = max(training.errors()) + 3
    again = training.start(1, epochs=str(last + 1))
    end = runs.end(again)
    assert (end.exit_code, end.stopped) == (0, False), f"{end}\n{runs.log(again)}"
    errors = training.errors()
    assert sorted(errors) == list(range(last + 1))
    assert errors == pytest.approx(_unbroken(examples, last + 1), abs=ROUNDING)


def _assert_on_two_nodes(pods: Sequence[dict[str, Any]], nodes: Sequence[str]) -> None:
    """And all know the first by its pod's address."""
    assert [pod["spec"]["nodeName"] for pod in pods] == list(nodes)
    first, second = (pod["status"]["podIP"] for pod in pods)
    assert first != second
    assert {pod["metadata"]["annotations"][GO].split()[1] for pod in pods} == {first}


def _unbroken(examples: Path, epochs: int) -> Errors:
    """Of one process that nobody interrupts."""
    command = [sys.executable, EXAMPLE, "--epochs", str(epochs)]
    done = subprocess.run(
        command, cwd=examples, env=ENV, capture_output=True, text=True, timeout=600, check=True
    )
    return {int(epoch): float(error) for epoch, error in EPOCH.findall(done.stdout)}
