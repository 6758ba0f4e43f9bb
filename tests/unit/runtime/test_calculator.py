"""Planning in the background: when, by whom, and what happens to a process that is killed."""

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from boa.model.speedup import Amdahl
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.runtime.calculator import BackgroundCalculator
from boa.scheduler.plan.calculator import (
    QUIET_S,
    InlineCalculator,
    PlanAnswer,
    PlanQuestion,
    due,
    solved,
)
from boa.solver.planner import plan

T4 = {"T4": GpuType(name="T4", price=1.0, gpus_per_node=4)}
PATIENCE_S = 300.0


def workload(classes: int = 1, epochs: int = 1) -> Workload:
    stretch = Epoch(work=3600.0, speedups={"T4": Amdahl(0.9)})
    return Workload(
        gpu_types=T4,
        classes=tuple(
            JobClass(
                name=f"c{n}", arrivals_per_hour=1.0, epochs=(stretch,) * epochs, rescale_s=60.0
            )
            for n in range(classes)
        ),
    )


def until(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not ready():
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.005)


def answer_of(calculator: BackgroundCalculator) -> PlanAnswer:
    found: list[PlanAnswer] = []

    def polled() -> bool:
        answer = calculator.poll()
        if answer is not None:
            found.append(answer)
        return bool(found)

    until(polled)
    return found[0]


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.fixture
def calculator() -> Iterator[BackgroundCalculator]:
    calculator = BackgroundCalculator()
    yield calculator
    calculator.close()


# What is answered


def test_the_answer_is_the_plan() -> None:
    answer = solved(PlanQuestion(workload(), 1.5, 7))
    assert answer.solution is not None
    assert answer.number == 7
    assert answer.solution.plan == plan(workload(), 1.5).plan
    assert (answer.too_small, answer.error) == (None, "")
    assert answer.wall_s > 0


def test_a_budget_that_cannot_keep_up_buys_the_cheapest_plan_and_says_what_it_needs() -> None:
    answer = solved(PlanQuestion(workload(), 0.5, 1))
    assert answer.too_small == pytest.approx(1 + 60 / 3600)
    assert answer.solution is not None
    assert answer.solution.spend == pytest.approx(answer.too_small)


def test_a_question_that_has_no_answer_is_answered_in_words() -> None:
    nowhere = Epoch(work=1.0, speedups={})
    lost = Workload(
        gpu_types=T4, classes=(JobClass(name="x", arrivals_per_hour=1.0, epochs=(nowhere,)),)
    )
    answer = solved(PlanQuestion(lost, 1.0, 3))
    assert answer.solution is None
    assert "no GPU type runs all of x" in answer.error
    assert "Error" in solved(PlanQuestion(None, 1.0, 4)).error  # type: ignore[arg-type]


def test_an_inline_calculator_answers_once() -> None:
    calculator = InlineCalculator()
    assert not calculator.busy
    assert calculator.poll() is None
    calculator.request(PlanQuestion(workload(), 1.5, 1))
    assert calculator.busy
    answer = calculator.poll()
    assert answer is not None
    assert answer.number == 1
    assert not calculator.busy
    calculator.close()
    assert calculator.poll() is None


# In the background


def test_a_question_is_answered_in_another_process(calculator: BackgroundCalculator) -> None:
    assert calculator.pid is None, "no process before it is needed"
    calculator.request(PlanQuestion(workload(3, 4), 15.0, 1))
    assert calculator.busy
    answer = answer_of(calculator)
    assert answer.number == 1
    assert answer.solution is not None
    assert answer.solution.plan == plan(workload(3, 4), 15.0).plan
    assert not calculator.busy
    assert calculator.pid not in (None, os.getpid())
    first = calculator.pid
    calculator.request(PlanQuestion(workload(), 0.1, 2))
    assert answer_of(calculator).too_small is not None
    assert calculator.pid == first, "one process for all questions"


def test_the_newest_question_is_the_one_that_is_answered(calculator: BackgroundCalculator) -> None:
    for number in range(1, 6):
        calculator.request(PlanQuestion(workload(), 1.5, number))
    assert answer_of(calculator).number == 5
    assert not calculator.busy


def test_asking_and_looking_never_wait_for_the_solver(calculator: BackgroundCalculator) -> None:
    calculator.request(PlanQuestion(workload(), 1.5, 0))
    answer_of(calculator)
    assert calculator.pid is not None
    os.kill(calculator.pid, signal.SIGSTOP)  # whoever waits for it now, waits until it is given up
    calculator.request(PlanQuestion(workload(200, 20), 1000.0, 1))
    for _ in range(100):
        assert calculator.busy
        assert calculator.poll() is None
    os.kill(calculator.pid, signal.SIGCONT)
    assert answer_of(calculator).solution is not None


def test_a_process_that_was_killed_idle_is_started_again(calculator: BackgroundCalculator) -> None:
    calculator.request(PlanQuestion(workload(), 1.5, 1))
    answer_of(calculator)
    pid = calculator.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    calculator.request(PlanQuestion(workload(), 1.5, 2))
    answer = answer_of(calculator)
    assert (answer.number, answer.error) == (2, "")
    assert calculator.pid not in (None, pid)


def test_a_question_is_asked_again_once_if_its_process_is_killed(
    calculator: BackgroundCalculator,
) -> None:
    calculator.request(PlanQuestion(workload(60, 60), 100.0, 1))
    pids: list[int] = []
    for _ in range(2):
        until(lambda: calculator.pid is not None and calculator.pid not in pids)
        pid = calculator.pid
        assert pid is not None
        pids.append(pid)
        os.kill(pid, signal.SIGKILL)
    answer = answer_of(calculator)
    assert answer.solution is None
    assert "killed" in answer.error
    calculator.request(PlanQuestion(workload(), 1.5, 2))
    assert answer_of(calculator).solution is not None


def test_closing_gives_up_what_is_being_solved() -> None:
    calculator = BackgroundCalculator()
    calculator.request(PlanQuestion(workload(200, 100), 300.0, 1))
    until(lambda: calculator.pid is not None)
    pid = calculator.pid
    assert pid is not None
    calculator.close()
    assert not is_running(pid)
    calculator.request(PlanQuestion(workload(), 1.5, 2))
    assert calculator.poll() is None
    calculator.close()


@pytest.mark.parametrize("classes", [1, 200])  # 200: more than a pipe holds, so sending takes part
def test_what_takes_too_long_is_killed_and_answered_in_words(classes: int) -> None:
    calculator = BackgroundCalculator()
    calculator.request(PlanQuestion(workload(), 1.5, 0))
    answer_of(calculator)
    pid = calculator.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    calculator._limit_s = 0.5  # from now on: beginning the process may take longer
    calculator.request(PlanQuestion(workload(classes, 100), 300.0, 1))
    answer = answer_of(calculator)
    assert (answer.number, answer.solution) == (1, None)
    assert answer.error == "given up after 0.5 s"
    assert not is_running(pid)
    assert not calculator.busy
    calculator.close()


def test_a_question_that_cannot_be_sent_is_answered_in_words_and_the_next_one_as_ever(
    calculator: BackgroundCalculator,
) -> None:
    unsendable: Any = threading.Lock()
    calculator.request(PlanQuestion(unsendable, 1.5, 1))
    answer = answer_of(calculator)
    assert (answer.number, answer.solution) == (1, None)
    assert answer.error.startswith("TypeError: cannot pickle")
    calculator.request(PlanQuestion(workload(), 1.5, 2))
    assert answer_of(calculator).solution is not None


PARENT = """
import time
from test_calculator import BackgroundCalculator, PlanQuestion, answer_of, workload
if __name__ == "__main__":
    calculator = BackgroundCalculator()
    calculator.request(PlanQuestion(workload(), 1.5, 1))
    answer_of(calculator)
    if {busy}:
        calculator.request(PlanQuestion(workload(300, 200), 400.0, 2))
    print(calculator.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("busy", [False, True])
def test_the_process_ends_with_its_parent_however_that_ends(tmp_path: Path, busy: bool) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT.format(busy=busy))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.kill()
        parent.wait()
        until(lambda: not is_running(pid))


# When


def reason(**changes: float) -> str:
    """By default: a plan was asked for long enough ago, and nothing has changed."""
    asked = {
        "now": 1000.0,
        "last_at": 1000.0 - QUIET_S,
        "last_version": 3,
        "version": 3,
        "last_budget": 10.0,
        "budget": 10.0,
        "replan_s": 900.0,
    }
    return due(**(asked | changes))  # type: ignore[arg-type]


def test_nothing_new_is_no_reason() -> None:
    assert reason() == ""
    assert reason(budget=10.05) == ""


def test_the_first_plan_is_asked_for_at_once() -> None:
    assert due(0.0, None, -1, 0, 0.0, 10.0, math.inf)


def test_material_changes_are_planned_for_at_once() -> None:
    assert "workload" in reason(version=4)
    assert "budget" in reason(budget=10.6)
    assert "budget" in reason(budget=9.4)


def test_plans_are_made_anew_after_a_while_whatever_happens() -> None:
    assert reason(last_at=1000.0 - 899.0) == ""
    assert "time" in reason(last_at=1000.0 - 900.0)


def test_no_two_plans_within_a_few_seconds() -> None:
    assert reason(version=4, budget=99.0, last_at=1000.0 - QUIET_S + 0.1) == ""


def test_a_clock_that_was_set_back_does_not_stop_planning() -> None:
    assert reason(now=10.0, last_at=1000.0)
