"""Whose money: a budget, those who share it, and the classes of jobs that each of them pays for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from boa.model.terms import Terms
from boa.units import UsdPerHour


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
    """Classes that it pays for itself, not through a part."""

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
    def payers(self) -> Mapping[str, str]:
        """By class: the name of the innermost budget that pays for it."""
        return {name: budget.name for budget in self.every for name in budget.classes}

    def scaled(self, factor: float) -> "Budget":
        """All of its money by the hour, that many times; hard caps stay, and amounts on terms."""
        most = self.max_per_hour
        return replace(
            self,
            per_hour=self.per_hour * factor,
            max_per_hour=None if most is None else most * factor,
            parts=tuple(part.scaled(factor) for part in self.parts),
        )

    def paying_for(self, classes: tuple[str, ...]) -> "Budget":
        """The same tree for these classes: the whole pays for those that nobody names, and nobody
        for those that do not come."""
        named = set(self.every_class)
        others = tuple(name for name in classes if name not in named)
        found = self._keeping(frozenset(classes))
        return replace(found, classes=found.classes + others)

    def _keeping(self, classes: frozenset[str]) -> "Budget":
        return replace(
            self,
            parts=tuple(part._keeping(classes) for part in self.parts),
            classes=tuple(name for name in self.classes if name in classes),
        )
