"""When a plan that could not be made is asked for again."""

from dataclasses import replace
from unittest.mock import Mock

import pytest

from boa.scheduler.learn.profiler import Profiler
from boa.scheduler.plan.calculator import (
    QUIET_S,
    InlineCalculator,
    PlanAnswer,
    PlanQuestion,
    solved,
)
from boa.scheduler.plan.planning import Planner
from boa.scheduler.state import Draft, State
from boa.units import Seconds
from unit.runtime.test_calculator import workload

REPLAN_S = 900.0
START = 1_000_000.0


class Failing(InlineCalculator):
    """Counts what it is asked; `error` is all it answers, if there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.error = "out of order"

    def request(self, question: PlanQuestion) -> None:
        self.asked += 1
        self._answer = solved(question)
        if self.error:
            self._answer = replace(self._answer, solution=None, error=self.error)


class Planning:
    def __init__(self) -> None:
        self.calculator = Failing()
        self.profiler = Mock(spec=Profiler, version=1)
        self.profiler.workload.return_value = workload()
        self.planner = Planner(self.calculator, self.profiler, REPLAN_S)
        self.now = START

    def step(self, budget: float = 1.5) -> Draft:
        draft = Draft(State(), self.now)
        self.planner.step(draft, budget)
        return draft

    def next_question(self) -> Seconds:
        """Take the answer; how long it then is until the next question, to the second."""
        self.step()
        asked, began = self.calculator.asked, self.now
        while self.calculator.asked == asked:
            assert self.now - began <= 2 * REPLAN_S, "never asked again"
            self.now += 1.0
            self.step()
        return self.now - began


@pytest.fixture
def planning() -> Planning:
    planning = Planning()
    planning.step()
    assert planning.calculator.asked == 1
    return planning


def test_an_error_is_told_and_asked_about_again_soon_then_ever_more_seldom(
    planning: Planning,
) -> None:
    assert [event.text for event in planning.step().changes.events] == [
        "no plan could be made: out of order"
    ]
    pauses = [planning.next_question() for _ in range(10)]
    doubling = [QUIET_S * 2**n for n in range(8)]
    assert pauses == [*doubling, REPLAN_S, REPLAN_S]


def test_the_pause_begins_when_the_error_comes_however_long_that_took(planning: Planning) -> None:
    planning.now += 300.0
    planning.step()
    planning.now += QUIET_S - 1.0
    planning.step()
    assert planning.calculator.asked == 1
    planning.now += 1.0
    planning.step()
    assert planning.calculator.asked == 2


def test_after_a_plan_everything_is_as_before_and_the_next_error_is_forgiven_as_soon(
    planning: Planning,
) -> None:
    for _ in range(3):
        planning.next_question()
    planning.calculator.error = ""
    planning.next_question()
    assert planning.next_question() == REPLAN_S
    assert planning.planner.plan is not None
    planning.calculator.error = "out of order"
    planning.next_question()
    assert planning.next_question() == QUIET_S


def test_another_budget_is_planned_for_without_waiting_for_the_pause(planning: Planning) -> None:
    for _ in range(5):
        planning.next_question()
    planning.step()
    asked = planning.calculator.asked
    planning.now += QUIET_S
    planning.step(budget=3.0)
    assert planning.calculator.asked == asked + 1


def test_an_answer_without_words_is_no_plan_either(planning: Planning) -> None:
    planning.calculator._answer = PlanAnswer(number=1, solution=None)
    assert [event.kind for event in planning.step().changes.events] == ["trouble"]
