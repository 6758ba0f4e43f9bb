"""Running commands in this process, on a small workload with every kind of curve."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from boa.cli import main

WORKLOAD = """\
version: 1
gpu_types:
  T4: {price: 1.0, gpus_per_node: 4}
  A100: {price: 3.0, gpus_per_node: 8}
classes:
  - name: small
    arrivals_per_hour: 6
    rescale_s: 30
    max_gpus: 7
    epochs:
      - {work_s: 600, speedup: {T4: {amdahl: 0.9}, A100: {amdahl: 0.8, scale: 2.5}}}
      - {work_s: 900, speedup: {T4: {amdahl: 0.99}, A100: {amdahl: 0.9, scale: 2.5}}}
  - name: large
    arrivals_per_hour: 0.5
    weight: 2
    rescale_s: 60
    epochs:
      - {work_s: 20000, speedup: {T4: {table: {2: 2, 4: 3.6, 8: 6, 16: 8}}, A100: {power: 0.9}}}
"""
STRICT: Any = {"parse_constant": lambda name: pytest.fail(f"{name} is not JSON")}


JOBS = 8
"""Of the trace that simulations are tried on."""
CONTRACT = {
    "policy",
    "jobs",
    "completed",
    "average_jct_s",
    "p50_jct_s",
    "p95_jct_s",
    "p99_jct_s",
    "makespan_s",
    "gpu_hours",
    "average_gpus",
    "spend_per_hour",
    "rented_gpus",
    "rented_spend_per_hour",
    "rescalings_per_job",
    "average_efficiency",
    "average_queueing_s",
    "wall_s",
}
"""Keys that every simulation's document has."""


class Boa:
    """Runs commands in this process and keeps what they said."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.err = ""

    def __call__(self, *arguments: object, code: int = 0) -> str:
        ended = main([str(a) for a in arguments])
        said = self.capsys.readouterr()
        self.err = said.err
        assert ended == code, said.err
        return said.out

    def json(self, *arguments: object) -> Any:
        return json.loads(self(*arguments, "--json"), **STRICT)


def same(document: Mapping[str, Any]) -> str:
    return json.dumps({**document, "wall_s": 0})
