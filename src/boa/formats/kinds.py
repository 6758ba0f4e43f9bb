"""Every format, by the name that `boa schema` knows it by."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boa.formats.shapes import Format

KINDS: Mapping[str, str] = {
    "workload": "what a plan is made from",
    "budgets": "who shares a budget, for `boa plan --budgets`",
    "calendar": "budgets and prices by the hour of the week, for `boa plan --calendar`",
    "plan": "what `boa plan -o` writes",
    "job": "what `boa submit` sends",
    "config": "`boa.yaml`, which `boa serve` reads",
    "profile": "how fast a class trains",
    "report": "what a running job says of itself",
}


def format_of(kind: str) -> "Format[Any]":
    """The declaration of one of `KINDS`."""
    match kind:
        case "workload":
            from boa.formats.workload import WORKLOAD

            return WORKLOAD
        case "budgets":
            from boa.formats.budgets import BUDGETS

            return BUDGETS
        case "calendar":
            from boa.formats.calendar import CALENDAR

            return CALENDAR
        case "plan":
            from boa.formats.plan import PLAN

            return PLAN
        case "job":
            from boa.formats.job import JOB

            return JOB
        case "config":
            from boa.formats.service_fields import CONFIG

            return CONFIG
        case "profile":
            from boa.formats.profile import PROFILE

            return PROFILE
        case "report":
            from boa.formats.report import REPORT

            return REPORT
    raise KeyError(kind)
