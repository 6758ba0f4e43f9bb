"""Ranks that do something together: it works for all of them, or all of them hear why not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch.distributed as dist

from boa.train.torch.ranks import Ranks

_T = TypeVar("_T")
_U = TypeVar("_U")


class Failed(RuntimeError):
    """Raised on every rank when one of them fails."""

    def __init__(self, rank: int, reason: str) -> None:
        self.rank, self.reason = rank, reason
        super().__init__(f"rank {rank}: {reason}")


@dataclass(frozen=True, slots=True)
class _Failure:
    rank: int
    reason: str


class Circle:
    """A Gloo group of its own, so that its talk never mixes with that of training.

    All ranks make it, and call `exchange`, in the same order; one thread at a time.
    """

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._group = None if ranks.alone else dist.new_group(backend="gloo")

    def exchange(self, mine: Callable[[], _T], merge: Callable[[Sequence[_T]], Sequence[_U]]) -> _U:
        """Every rank's `mine` goes to rank 0, which gives every rank one of what it merges."""
        answers = self._on_first(self._gathered(self._attempt(mine)), merge)
        answer = self._scattered(answers)
        if isinstance(answer, _Failure):
            raise Failed(answer.rank, answer.reason)
        return answer  # type: ignore[no-any-return]

    def first(self, make: Callable[[], _T]) -> _T:
        """The result on rank 0, on every rank."""
        return self.exchange(lambda: None, lambda all_: [make()] * len(all_))

    def agree(self, mine: Callable[[], bool]) -> bool:
        """Whether it is so on any rank."""
        return self.exchange(mine, lambda all_: [any(all_)] * len(all_))

    def together(self, work: Callable[[], _T]) -> _T:
        """Every rank's own result, once all of them have succeeded."""
        results: list[_T] = []

        def do() -> None:
            results.append(work())

        self.exchange(do, lambda all_: [None] * len(all_))
        return results[0]

    def close(self) -> None:
        """End its threads. One that is at it still when the interpreter ends aborts the process."""
        if self._group is not None:
            dist.destroy_process_group(self._group)
            self._group = None

    def _gathered(self, sent: Any) -> list[Any] | None:
        """None on other ranks than 0."""
        if self._group is None:
            return [sent]
        everyone: list[Any] | None = None
        if self._ranks.rank == 0:
            everyone = [None] * self._ranks.world_size
        dist.gather_object(sent, everyone, dst=0, group=self._group)
        return everyone

    def _scattered(self, answers: list[Any] | None) -> Any:
        if self._group is None:
            return None if answers is None else answers[0]
        received = [None]
        dist.scatter_object_list(received, answers, src=0, group=self._group)
        return received[0]

    def _on_first(
        self, everyone: list[Any] | None, merge: Callable[[Sequence[Any]], Sequence[Any]]
    ) -> list[Any] | None:
        if everyone is None:
            return None
        failure = next((sent for sent in everyone if isinstance(sent, _Failure)), None)
        merged = self._attempt(lambda: merge(everyone)) if failure is None else failure
        return [merged] * len(everyone) if isinstance(merged, _Failure) else list(merged)

    def _attempt(self, work: Callable[[], Any]) -> Any:
        """The result, or a `_Failure`."""
        try:
            return work()
        except Exception as problem:  # whatever it is, the others wait for our answer
            return _Failure(self._ranks.rank, _reason(problem))


def _reason(problem: BaseException) -> str:
    """Torch's complaint about a half-written file follows from the full disk, which says more."""
    found: BaseException | None = problem
    while found is not None and not isinstance(found, OSError):
        found = found.__cause__ or found.__context__
    return f"{type(found or problem).__name__}: {found or problem}"
