"""The budgets file: who shares a budget, what each has by right, and which classes they pay for."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from boa.formats.budget_terms import TERMS, WAYS, average, terms_of
from boa.formats.containers import list_of, mapping_of, object_of
from boa.formats.files import read_document
from boa.formats.parts import LABEL, LINE, VERSION_1
from boa.formats.shapes import (
    FLAG,
    BeyondSchema,
    Field,
    Format,
    Shape,
    Wrong,
    needed,
    nullable,
    number,
    or_empty,
    step,
)
from boa.model.budgets import WHOLE, Budget
from boa.model.terms import Terms

DEEPEST = 3
"""Parts within parts: teams of an organisation, projects of a team, users of a project."""
MAX_CLASSES = 1000
"""Classes that a part names."""
_ROUNDING = 1e-9
_RATE = "USD per hour"
_PARTS = "a mapping from names to parts, such as {vision: {budget_per_hour: 15, classes: [bert]}}"

_PEOPLE = (
    Field(
        "users",
        list_of(LINE, least=0, unique="each user once"),
        "Whose jobs it is for, by the names of their tokens. The first part that fits a job pays "
        "for it.",
        otherwise="everybody",
    ),
    Field(
        "teams",
        list_of(LINE, least=0, unique="each team once"),
        "Likewise, by the teams of their tokens.",
        otherwise="everybody",
    ),
)


def _part(depth: int) -> Shape[Budget]:
    """A part of a budget. Its name is its key: it is put in when the whole is read."""
    within = [] if depth == DEEPEST else [_parts(depth + 1)]
    return or_empty(
        object_of(
            Field(
                "budget_per_hour",
                number(least=0, of=_RATE),
                "Average spend that it has by right, whenever it wants it. What it does not want, "
                "others may have.",
                otherwise="0",
                to="per_hour",
            ),
            *TERMS,
            Field(
                "max_per_hour",
                nullable(number(above=0, of=_RATE)),
                "The most that it spends on average, with what others leave it.",
                otherwise="what there is",
            ),
            Field(
                "max_spend_per_hour",
                nullable(number(above=0, of=_RATE)),
                "A hard cap: its jobs never hold more than this at any moment. Those that would "
                "are narrowed, or wait.",
                otherwise="no cap",
                to="max_spend",
            ),
            Field(
                "lends",
                FLAG,
                "Whether others may have what it does not want.",
                default=True,
            ),
            Field(
                "borrows",
                FLAG,
                "Whether it may have what others do not want. Where not, its own money is the most "
                "that it spends, and once that is used up its jobs wait.",
                default=True,
            ),
            Field(
                "classes",
                list_of(LINE, least=0, most=MAX_CLASSES, unique="each class once"),
                "Job classes that it pays for itself, not through a part. With `users` or `teams`: "
                "of theirs alone, and all of theirs where no class is named.",
                otherwise="none",
            ),
            *_PEOPLE,
            *within,
            make=_unnamed,
            expected="a mapping such as {budget_per_hour: 15, classes: [bert]}",
        )
    )


def _parts(depth: int) -> Field:
    return Field(
        "parts",
        mapping_of(LABEL, _part(depth), called="NAME", least=0, expected=_PARTS),
        "Those who share it, by name: teams, projects, users.",
        otherwise="nobody",
    )


def _unnamed(*, parts: dict[str, Budget] | None = None, **values: Any) -> Budget:
    terms = terms_of(values)
    per_hour = average(terms, values.pop("per_hour", None))
    made = Budget(name="", per_hour=per_hour, terms=terms, parts=_named(parts or {}), **values)
    if made.borrows:
        return made
    if made.max_per_hour is not None:
        both = "max_per_hour and borrows: false"
        raise BeyondSchema(both, "one of them: either is the most that it spends", at=".borrows")
    if terms is None and not per_hour:
        raise BeyondSchema(
            False, "money of its own, such as budget_per_hour, with it", at=".borrows"
        )
    return replace(made, max_per_hour=per_hour if terms is None else None)


def _named(parts: dict[str, Budget]) -> tuple[Budget, ...]:
    return tuple(replace(part, name=name) for name, part in parts.items())


def _whole(*, name: str, parts: dict[str, Budget], **values: Any) -> Budget:
    terms = terms_of(values)
    per_hour = average(terms, values.get("per_hour"))
    if not per_hour:
        problem = "missing" if terms is None else "missing beside budget_total"
        expected = f"one of {', '.join(WAYS[:-1])}: a plan is for a while"
        raise BeyondSchema(None, expected, problem, at=".budget_per_hour")
    whole = Budget(name=name, per_hour=per_hour, terms=terms, parts=_named(parts))
    _check_names(whole)
    _check_money(whole, per_hour or math.inf, "")
    return whole


def _check_names(whole: Budget) -> None:
    """Everyone has a name of their own, and every class one payer among those that are for
    everybody."""
    names, payers = {whole.name}, dict[str, str]()

    def check(budget: Budget, at: str, for_some: bool) -> None:
        for part in budget.parts:
            here = f"{at}.parts{step(part.name)}"
            if part.name in names:
                raise BeyondSchema(part.name, "a name that no other part has", at=here)
            names.add(part.name)
            some = for_some or part.for_some
            for i, job_class in enumerate(() if some else part.classes):
                if job_class in payers:
                    expected = f"a class that nobody else pays for: {payers[job_class]} does"
                    raise BeyondSchema(job_class, expected, at=f"{here}.classes[{i}]")
                payers[job_class] = part.name
            check(part, here, some)

    check(whole, "", False)
    _check_people(whole, "")


def _check_people(budget: Budget, at: str) -> None:
    """No part is for people whose jobs all go to one before it."""
    taken: dict[tuple[str, str], str] = {}
    for part in budget.parts:
        here = f"{at}.parts{step(part.name)}"
        for field, names in (("users", part.users), ("teams", part.teams)):
            for i, name in enumerate(names):
                if (first := taken.get((field, name))) is not None:
                    expected = f"someone else: {first}, which comes first, pays for all their jobs"
                    raise BeyondSchema(name, expected, at=f"{here}.{field}[{i}]")
                if not part.classes:
                    taken[field, name] = part.name
        _check_people(part, here)


def _check_money(budget: Budget, most: float, at: str) -> None:
    """Nobody has by right what is not there."""
    shares = sum(part.per_hour for part in budget.parts)
    if shares > most * (1 + _ROUNDING):
        problem = f"they have {shares:g} USD per hour by right, all together"
        expected = f"at most the {most:g} that they share"
        raise BeyondSchema(shares, expected, problem, at=f"{at}.parts")
    for part in budget.parts:
        here = f"{at}.parts{step(part.name)}"
        ceiling = most if part.max_per_hour is None else part.max_per_hour
        if part.per_hour > ceiling * (1 + _ROUNDING):
            expected = f"at least what it has by right, {part.per_hour:g} USD per hour"
            raise BeyondSchema(ceiling, expected, at=f"{here}.max_per_hour")
        if part.max_spend is not None and part.per_hour > part.max_spend * (1 + _ROUNDING):
            expected = f"at least what it has by right on average, {part.per_hour:g} USD per hour"
            raise BeyondSchema(part.max_spend, expected, at=f"{here}.max_spend_per_hour")
        _check_money(part, max(part.per_hour, min(ceiling, most)), here)


BUDGETS = Format(
    "BOA budgets",
    "Who shares a budget: teams, their projects and users, what each has by right, and which "
    "classes of jobs they pay for. Money is in USD.",
    object_of(
        VERSION_1,
        Field("name", LABEL, "Of the whole.", default=WHOLE),
        Field(
            "budget_per_hour",
            number(above=0, of=_RATE),
            "Average spend of all together.",
            otherwise="as one of the next three says",
            to="per_hour",
        ),
        *TERMS,
        needed(
            "parts",
            mapping_of(LABEL, _part(1), called="NAME", expected=_PARTS),
            "Those who share it, by name: teams, projects, users. The whole pays for classes that "
            "none of them names.",
        ),
        make=_whole,
    ),
)


PARTS = _parts(1)
"""The same of the budget of a service."""


def shared(budget: float, terms: Terms | None, parts: dict[str, Budget]) -> Budget:
    """A budget, and those who share it; an error names its place in the file."""
    try:
        _check_names(whole := Budget(name=WHOLE, per_hour=budget, terms=terms, parts=_named(parts)))
        _check_money(whole, budget or math.inf, "")
        return whole
    except Wrong as wrong:
        raise wrong.error("") from None


def load_budgets(path: str | Path) -> Budget:
    """Read a budgets file (YAML or JSON)."""
    return parse_budgets(read_document(path))


def parse_budgets(document: Any) -> Budget:
    """Budgets from plain mappings and lists, as YAML and JSON give them."""
    return BUDGETS.shape.read(document)
