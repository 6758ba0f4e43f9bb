"""The layout of a run: chosen before the model is built, measured while it trains.

Only rank 0 chooses; the others hear of it. What was learned goes into the journal and to the
service, for the next run and for others of the class.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

import torch
import torch.distributed as dist
from torch import nn

from boa.model.exit_codes import AGAIN
from boa.model.layouts import MOST_WORDS, Trial
from boa.train import session
from boa.train.torch.layout.applying import weighed
from boa.train.torch.layout.choosing import Choice, Place, choose
from boa.train.torch.layout.journal import Journal
from boa.train.torch.layout.layouts import Layout, fitting, layout_named
from boa.train.torch.layout.tensor_plans import TensorPlan, not_split, plan_of
from boa.train.torch.layout.watching import Watch
from boa.train.torch.ranks import Ranks
from boa.train.torch.wrapping import outline, plain

AUTO = "auto"
Model = nn.Module | Callable[[], nn.Module]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A layout, as a script asks for it, and between what it may be chosen."""

    parallel: str
    tensor_plan: TensorPlan | None
    batch: int
    """Samples of a step, at most."""
    most_local: int
    """Samples of one pass on one GPU, at most."""
    adapts: bool
    """Whether the batch size changes: then no GPUs work on the same samples."""


class Arrangement:
    """Made by all ranks, and asked in the same order."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._chosen: Choice | None = None
        self._journal: Journal | None = None
        self._watch = Watch(ranks.device)
        self._running = 0, 0  # samples of a step, passes
        self._stepped = False
        self._told: list[Trial] = []

    def choose(self, model: Model, wanted: Wanted) -> tuple[Choice, TensorPlan | None]:
        """Raises ValueError where it cannot be as it is asked for."""
        if wanted.parallel != AUTO:
            return self._as_asked(model, wanted)
        if self._chosen is not None:
            raise ValueError(
                "parallel: got 'auto' for a second model; expected it for one: what is measured is "
                "of both"
            )
        plan = _usable_plan(model, wanted, self._ranks.local_world)
        found: list[Choice | None] = [None]
        if self._ranks.rank == 0:
            found = [self._best(model, wanted, plan)]
        if not self._ranks.alone:
            dist.broadcast_object_list(found, src=0, device=torch.device("cpu"))
        assert found[0] is not None
        self._begin(found[0])
        return found[0], plan

    @property
    def chooses(self) -> bool:
        """Whether the layout, and how many samples are taken at a time, are ours to choose."""
        return self._chosen is not None

    def running(self, batch: int, passes: int) -> None:
        """So many samples to a step, in so many passes beside the last."""
        self._running = batch, passes

    def interrupted(self) -> None:
        self._watch.interrupted()

    def stepped(self, batch: int) -> None:
        """A step has ended; nothing, unless the layout is ours to choose."""
        self._stepped = True
        if self._chosen is None or self._ranks.rank != 0 or batch != self._running[0]:
            return
        seen = self._watch.stepped(batch)
        if seen is not None:
            trial = self._trial(step_s=seen.step_s, peak_bytes=seen.peak_bytes)
            assert self._journal is not None
            self._journal.record(trial)
            self._told = [told for told in self._told if told.key != trial.key] + [trial]
            self._tell()

    def _as_asked(self, model: Model, wanted: Wanted) -> tuple[Choice, TensorPlan | None]:
        asked = layout_named(wanted.parallel)
        world, local = self._ranks.world_size, self._ranks.local_world
        layout = fitting(asked, world, local)
        plan = None
        if layout.tensor > 1:
            if wanted.adapts:
                raise ValueError(
                    f"parallel: got {wanted.parallel!r} with max_batch; expected one of the two"
                )
            shape = plain(outline(model))
            plan = plan_of(shape, wanted.tensor_plan)
            if plan is None:
                raise ValueError(
                    f"parallel: got {wanted.parallel!r} for a {type(shape).__name__}, which does "
                    "not say how its layers are split; expected tensor_plan=…, as "
                    "torch.distributed.tensor.parallel.parallelize_module takes it"
                )
            if hindrance := not_split(shape, plan, layout.tensor):
                raise ValueError(f"parallel: got {wanted.parallel!r}, but {hindrance}")
        if layout.tensor != asked.tensor and self._ranks.rank == 0:
            said = f"boa: parallel={wanted.parallel!r} at this width: {layout.name}"
            print(said, file=sys.stderr, flush=True)
        return Choice(layout, wanted.most_local, "asked for"), plan

    def _best(self, model: Model, wanted: Wanted, plan: TensorPlan | None) -> Choice:
        self._journal = Journal(session.context().checkpoint_dir)
        self._told = self._journal.open()
        choice = choose(
            _place(self._ranks),
            weighed(model, plan),
            self._journal.trials,
            batch=wanted.batch,
            most_local=wanted.most_local,
            can_split=plan is not None,
        )
        print(f"boa: {choice.layout.name} ({choice.why})", file=sys.stderr, flush=True)
        return choice

    def _begin(self, choice: Choice) -> None:
        self._chosen = choice
        before = sys.excepthook

        def ended(
            kind: type[BaseException], problem: BaseException, trace: TracebackType | None
        ) -> None:
            before(kind, problem, trace)
            if issubclass(kind, torch.OutOfMemoryError):
                self._end_with(self._trial(out_of_memory=True))
            elif not self._stepped and choice.layout != Layout() and torchs_own(kind, trace):
                self._end_with(self._trial(broken=True))

        sys.excepthook = ended
        if self._told:
            self._tell()

    def _end_with(self, trial: Trial) -> None:
        """Write it down, and end at once so that the next run does better: an orderly end would
        wait for ranks that wait for this one."""
        home = session.context().checkpoint_dir
        if home is None:
            said = "boa: nothing is learned from this: there is no folder for checkpoints"
            print(f"{said} (BOA_CHECKPOINT_DIR)", file=sys.stderr, flush=True)
            return
        (self._journal or Journal(home)).note(trial, self._ranks.rank)
        session.session().close()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(AGAIN)

    def _trial(
        self,
        step_s: float | None = None,
        peak_bytes: int | None = None,
        *,
        out_of_memory: bool = False,
        broken: bool = False,
    ) -> Trial:
        assert self._chosen is not None
        batch, passes = self._running
        groups = self._chosen.layout.data_ranks(self._ranks.world_size)
        return Trial(
            gpu=session.context().gpu_type,
            width=self._ranks.world_size,
            nodes=self._ranks.nodes,
            layout=self._chosen.layout.name,
            local_batch=max(-(-batch // (groups * (passes + 1))), 1),
            passes=passes,
            step_s=step_s,
            batch=batch,
            peak_bytes=peak_bytes,
            out_of_memory=out_of_memory,
            broken=broken,
            why=self._chosen.why[:MOST_WORDS],
        )

    def _tell(self) -> None:
        session.session().tried([trial.as_told() for trial in self._told])


def torchs_own(kind: type[BaseException], trace: TracebackType | None) -> bool:
    """Whether torch itself refused something: what it does not do with a model that is cut. Not
    where ranks did not find each other."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not issubclass(kind, Exception) or issubclass(kind, OSError):
        return False
    within = trace.tb_frame.f_code.co_filename.startswith(os.path.dirname(torch.__file__))
    return within and not issubclass(kind, dist.DistError)


def _place(ranks: Ranks) -> Place:
    memory = 0
    if ranks.device.type == "cuda":
        memory = int(torch.cuda.get_device_properties(ranks.device).total_memory)
    return Place(
        gpu=session.context().gpu_type,
        world=ranks.world_size,
        nodes=ranks.nodes,
        local_world=ranks.local_world,
        memory=memory,
    )


def _usable_plan(model: Model, wanted: Wanted, local_world: int) -> TensorPlan | None:
    """How layers are split; None unless all GPUs of a node can share them, and so fewer can."""
    if wanted.adapts or local_world == 1:
        return None
    shape = plain(outline(model))
    plan = plan_of(shape, wanted.tensor_plan)
    return None if plan is None or not_split(shape, plan, local_world) else plan
