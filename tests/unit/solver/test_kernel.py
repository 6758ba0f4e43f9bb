"""The C kernel and its NumPy twin: the same operations, the same results up to rounding."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.model import Workload
from boa.solver.kernel import COMPILED
from boa.solver.objective import Rules
from boa.solver.path import shortest_paths
from boa.solver.tables import build_tables
from strategies import workloads


def test_a_machine_with_a_compiler_has_the_kernel() -> None:
    if os.environ.get("BOA_PURE_PYTHON"):
        pytest.skip("BOA_PURE_PYTHON asks for NumPy")
    import shutil
    import sysconfig

    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    assert (shutil.which(compiler) is not None) == COMPILED


@given(
    workload=workloads(),
    rules=st.sampled_from([Rules(), Rules(routing="migrate"), Rules(rescaling=False)]),
    log_mu=st.floats(-6, 6),
)
def test_both_give_the_same_sequences(workload: Workload, rules: Rules, log_mu: float) -> None:
    tables = build_tables(workload, rules)
    for block in tables.blocks:
        at = np.repeat(np.arange(len(block.rows)), 2)
        time_weights = tables.time_weights[block.class_of[at]]
        money_weights = np.where(np.arange(len(at)) % 2, 10.0**log_mu, 1.0)
        fast = shortest_paths(block, at, time_weights, money_weights)
        plain = shortest_paths(block, at, time_weights, money_weights, compiled=False)
        np.testing.assert_allclose(fast.values, plain.values, rtol=1e-14)
        for n, row in enumerate(at):
            used = slice(0, int(block.epochs[row]))
            value = (time_weights[n], money_weights[n])
            assert value[0] * fast.times[n] + value[1] * fast.costs[n] == fast.values[n]
            if not np.array_equal(fast.states[n, used], plain.states[n, used]):
                # Only a tie may be broken differently.
                assert fast.values[n] == pytest.approx(plain.values[n], rel=1e-14)
