"""Whose money: a budget, those who share it, and the classes of jobs that each of them pays for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from boa.model.streams import class_of, payer_in
from boa.model.terms import Terms
from boa.units import UsdPerHour

WHOLE = "all"
"""Name of the whole, unless a file says another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Money of an organisation, of a team within it, of a user or a class within that: a tree.

    Whoever shares a budget has a part of it by right, and may have more while others leave theirs.
    """

    name: str
    per_hour: UsdPerHour = 0.0
    """Average spend: of the whole the most, of a part what it has by right when it wants it. With
    `terms`, what they come to on average: what it is now depends on what was spent."""
    terms: Terms | None = None
    """Money for a month, a quarter or until a date, where it is not said by the hour."""
    max_per_hour: UsdPerHour | None = None
    """The most that a part spends on average, with what others lend it. None: what there is."""
    max_spend: UsdPerHour | None = None
    """The most that its jobs hold at any moment. None: what there is."""
    lends: bool = True
    """Whether others may have what it does not want."""
    borrows: bool = True
    """Whether it may have what others do not want, beyond its own."""
    parts: tuple["Budget", ...] = ()
    classes: tuple[str, ...] = ()
    """Classes that it pays for itself, not through a part; where it is for some people, of theirs
    alone, and none: all of theirs."""
    users: tuple[str, ...] = ()
    """People whose jobs it is for, by the names of their tokens …"""
    teams: tuple[str, ...] = ()
    """… and by their teams. None of both: everybody's."""

    @property
    def every(self) -> Iterator["Budget"]:
        """It and all within, from the top down."""
        yield self
        for part in self.parts:
            yield from part.every

    @property
    def every_class(self) -> tuple[str, ...]:
        return tuple(name for budget in self.every for name in budget.classes)

    @property
    def for_some(self) -> bool:
        """Whether it is for the jobs of some people alone."""
        return bool(self.users or self.teams)

    @property
    def payers(self) -> Mapping[str, str]:
        """By class: the name of the innermost budget that pays for it, whoever submits it; by
        stream in a tree that is `paying_for` them."""
        return dict(self._payers())

    def _payers(self) -> Iterator[tuple[str, str]]:
        if not self.for_some:
            yield from ((name, self.name) for name in self.classes)
            for part in self.parts:
                yield from part._payers()

    def who_pays(self) -> Callable[[str], str]:
        """By stream: the name of the innermost budget that pays for it; the whole, if no part
        does."""
        payers, names = self.payers, {budget.name for budget in self.every}

        def payer(stream: str) -> str:
            named = payer_in(stream)
            return named if named in names else payers.get(class_of(stream), self.name)

        return payer

    def payer_by_people(self, job_class: str, user: str, team: str) -> str:
        """The same of a new job, where that follows from who submits it: the first part that fits,
        and within it likewise. Empty: its class says who pays."""
        path = self._path(job_class, user, team) or ()
        return path[-1].name if any(budget.for_some for budget in path) else ""

    def _path(self, job_class: str, user: str, team: str) -> "tuple[Budget, ...] | None":
        """From it to whoever pays for a job; None: neither it nor a part of it does."""
        if self.for_some and user not in self.users and team not in self.teams:
            return None
        for part in self.parts:
            if (found := part._path(job_class, user, team)) is not None:
                return (self, *found)
        pays = job_class in self.classes or (self.for_some and not self.classes)
        return (self,) if pays else None

    def scaled(self, factor: float) -> "Budget":
        """All of its money by the hour, that many times; hard caps stay, and amounts on terms."""
        if factor == 1.0:
            return self
        most = self.max_per_hour
        return self.having(
            self.per_hour * factor,
            None if most is None else most * factor,
            tuple(part.scaled(factor) for part in self.parts),
        )

    def having(
        self, per_hour: UsdPerHour, max_per_hour: UsdPerHour | None, parts: tuple["Budget", ...]
    ) -> "Budget":
        """The same with other money by the hour. By hand: `dataclasses.replace` takes 1.6 times
        as long, and there is a new tree at every look."""
        return Budget(
            name=self.name,
            per_hour=per_hour,
            terms=self.terms,
            max_per_hour=max_per_hour,
            max_spend=self.max_spend,
            lends=self.lends,
            borrows=self.borrows,
            parts=parts,
            classes=self.classes,
            users=self.users,
            teams=self.teams,
        )

    @property
    def on_average(self) -> "Budget":
        """The tree over months, whatever was spent before: a hard cap bounds an average too, and
        whoever does not borrow spends no more than their own."""
        own = None if self.borrows else self.per_hour
        bounds = [most for most in (self.max_per_hour, self.max_spend, own) if most is not None]
        return replace(
            self,
            max_per_hour=min(bounds, default=None),
            parts=tuple(part.on_average for part in self.parts),
        )

    @property
    def ceiling_field(self) -> str:
        """The field of its file that bounds its average, in a tree that is `on_average`."""
        if self.max_per_hour is not None and self.max_per_hour == self.max_spend:
            return "max_spend_per_hour"
        return "max_per_hour" if self.borrows else "borrows: false"

    def paying_for(self, classes: tuple[str, ...]) -> "Budget":
        """The same tree for these classes or streams: the whole pays for those that nobody names,
        and nobody for those that do not come."""
        pays, paid = self.who_pays(), dict[str, list[str]]()
        for name in classes:
            paid.setdefault(pays(name), []).append(name)
        return self._paying(paid)

    def _paying(self, paid: Mapping[str, Sequence[str]]) -> "Budget":
        return replace(
            self,
            parts=tuple(part._paying(paid) for part in self.parts),
            classes=tuple(paid.get(self.name, ())),
            users=(),
            teams=(),
        )
