"""One run on the cluster: what its ranks answer → what happens next.

placing ─> preparing ─> starting ─> up ─> ended

Nothing here waits: `refs` are questions that were asked, `heard` takes an answer, and `tick` sees
to what does not come.
"""

import os
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from boa.engines import launching
from boa.engines.gang import Ending, RankEnd, together
from boa.engines.mirror import Mirror
from boa.engines.processes import run_supervisor
from boa.engines.ray import prepared
from boa.engines.ray.cluster import Cluster
from boa.engines.ray.folders import Marker
from boa.engines.ray.member import Member
from boa.engines.remote_folders import RemoteFolders
from boa.model.runs import Launch, RunKey
from boa.private_files import private_folder
from boa.units import Seconds

PLACED_S: Seconds = 60.0
"""Seconds until all GPUs of a run are its own: those of the run before are freed within seconds."""
PREPARED_S: Seconds = 120.0
"""Seconds until all actors answer; each is a new Python process."""
OVERDUE_S: Seconds = 60.0
"""Whoever has not answered by then, though `news` never takes so long, is silent: it hangs."""
UNREACHABLE_S: Seconds = 30.0
"""Without an answer from a node that Ray takes for alive."""
SETTLE_S: Seconds = 5.0
"""An actor died: maybe its node did, and Ray does not know yet."""
ASK_AGAIN_S: Seconds = 1.0
SLACK_S: Seconds = 15.0
"""Beyond the grace, for the news to arrive."""


class RayRun:
    def __init__(
        self,
        key: RunKey,
        cluster: Cluster,
        folders: RemoteFolders[Marker],
        log_bytes: int,
        marker: Marker,
        pass_env: Sequence[str] = (),
        memory_share: float = 0.0,
    ) -> None:
        self.key, self.ending = key, folders.ended(key)
        self.up = self.up_told = False
        self.hindrance = self.hindrance_told = self.awaits = self.awaits_told = ""
        self.saved_at = self.saved_told = 0.0
        self.timings: dict[str, Seconds] = {}
        self._cluster, self._folders, self._log_bytes = cluster, folders, log_bytes
        self._marker, self._pass_env, self._share = marker, list(pass_env), memory_share
        self._members: list[Member] = []
        self._launch: Launch | None = None
        self._group: Any = None
        self.in_cluster = False
        """Whether there may be something of it there: GPUs that nobody else can have."""
        self._began = self._prepared_at = time.monotonic()
        self._placed = False
        self._failing = False
        self._grace_s: Seconds | None = None
        self._deadline: Seconds | None = None

    @property
    def name(self) -> str:
        """The name of its placement group; its actors have a number behind."""
        return f"{self.key.job}.{self.key.attempt}.{self._marker.tag}"

    def refs(self) -> dict[Any, int]:
        return {m.ref: number for number, m in enumerate(self._members) if m.ref is not None}

    # Beginnings

    def begin(self, launch: Launch) -> None:
        self._marker.tag = uuid.uuid4().hex[:8]
        self._marker.token = os.path.join(launch.checkpoint_dir, f"boa-{self.name}")
        self._launch = launch
        self._folders.begin(self.key, self._marker)
        unknown = [node.node for node in launch.slots if not node.address]
        if unknown:  # Ray would put it on any node, or bring one that nobody has decided on
            reason = f"lost: node {unknown[0]} is not in the Ray cluster"
            self._finish(Ending(exit_code=None, stopped=False, reason=reason, node_lost=True))
            return
        self._leave_token(launch.checkpoint_dir)
        if launch.artifacts:
            with suppress(OSError):
                private_folder(launch.artifacts)
        addresses = [node.address for node in launch.slots for _ in node.gpus]
        self.in_cluster = True
        self._group = self._cluster.group(self.name, launch.gpu_type, addresses)
        token = os.path.basename(self._marker.token)
        for number, address in enumerate(addresses):
            name = f"{self.name}.{number}"
            actor = self._cluster.actor(name, launch.gpu_type, self._group, number)
            asked = actor.prepare.remote(launch.checkpoint_dir, token)
            self._members.append(Member(actor, node=address, ref=asked))

    def adopt(self) -> None:
        """Begun by an engine before this one."""
        self.in_cluster = True
        ranks = dict(self._marker.leads)
        for number, node in enumerate(self._marker.nodes):
            actor = self._cluster.find(f"{self.name}.{number}")
            member = Member(actor, node=node, rank=ranks.get(number), state="")
            self._members.append(member)
            self._open_log(member)
            if actor is None:
                self._died(member, "it is gone")
            else:
                member.ask()

    def abandon(self) -> None:
        """Nothing of it may stay in the cluster."""
        self.withdraw_token()
        if self.in_cluster:
            self._cluster.remove(self.name, [m.actor for m in self._members if m.actor is not None])
        self._members, self.in_cluster = [], False

    def _leave_token(self, folder: str) -> None:
        """A file that every rank must see: later runs go on from what this one leaves there."""
        try:
            private_folder(folder)
            Path(self._marker.token).touch(mode=0o600)
        except OSError:  # it may be there on the nodes alone
            self._marker.token = ""

    def withdraw_token(self) -> None:
        if self._marker.token:
            with suppress(OSError):
                os.unlink(self._marker.token)
            self._marker.token = ""

    def _prepared(self) -> None:
        """All ranks have answered: number them, and tell each what to run."""
        assert self._launch is not None
        with suppress(Exception):  # only for show
            self.timings["place"] = self._cluster.placed(self._group) or 0.0
        self._prepared_at = time.monotonic()
        self.timings["prepare"] = self._prepared_at - self._began - self.timings.get("place", 0)
        self.withdraw_token()
        answers = [member.answer or {} for member in self._members]
        problem = prepared.problem(self._launch, answers, here=os.uname().nodename)
        if problem:
            self._finish(Ending(exit_code=None, stopped=False, reason=problem))
            return
        plans = prepared.plans(self._launch, answers)
        self._marker.nodes = [member.node for member in self._members]
        self._marker.leads = [(number, plan["rank"]) for number, plan in plans]
        self._marker.launched = True
        self._folders.mark(self.key, self._marker)
        self._start(dict(plans), self._launch)
        for member in self._members:
            if member.rank is None:
                member.ask()

    def _start(self, plans: dict[int, launching.ProcessPlan], launch: Launch) -> None:
        spec = launch.spec
        workdir = spec.workdir or self._folders.work(self.key.job)
        package = Path(launch.package).read_bytes() if launch.package else b""
        place = {"environment": spec.environment, "image": spec.image, "digest": spec.package}
        for number, plan in plans.items():
            member = self._members[number]
            member.rank = plan["rank"]
            self._open_log(member)
            member.asked_at = time.monotonic()
            asked = (plan, workdir, not spec.workdir, spec.grace_s, self._log_bytes)
            member.ref = member.actor.start.remote(
                *asked, self._pass_env, launch.secrets, place, package, self._memory(member)
            )

    def _memory(self, member: Member) -> dict[str, Any]:
        """Memory for state between two runs, as its node is told of it."""
        answer = member.answer or {}
        service = self._cluster.namespace
        host, node = answer.get("ip", ""), answer.get("node", "")
        return {"share": self._share, "service": service, "host": host, "node": node}

    # What is heard

    def heard(self, number: int, answer: Any) -> None:
        member = self._members[number]
        member.ref = None
        try:
            if isinstance(answer, Exception):
                self._trouble(member, answer)
            else:
                self._understood(member, answer)
        except Exception as problem:  # a full disk here, say: whatever it is, the run has to end
            member.ends(None, f"lost: {_said(problem)}")

    def _understood(self, member: Member, answer: Any) -> None:
        if member.silent_since is not None and self._deadline is not None:
            left_s = self._deadline - SLACK_S - time.monotonic()
            member.tell_to_stop(max(left_s, 0.0))  # the stop may have been lost
        member.silent_since = None
        if not self._marker.launched:
            member.answer, member.node = answer, answer["node"]
            if all(one.answer is not None for one in self._members):
                self._prepared()
        elif isinstance(answer, bool):
            member.state = "up"
            member.ask()
            self._started(member, answer)
        else:
            self._news(member, answer)

    def _news(self, member: Member, news: dict[str, Any]) -> None:
        if member.mirror is not None:
            member.mirror.take(news["first"], news["output"])
        member.state = news["state"]
        self.saved_at = max(self.saved_at, news.get("saved_at", 0.0))
        if member.rank is not None and member.state == "idle":  # we went down, or the network did
            member.ends(None, "lost: its start never arrived", node_lost=True)
            return
        if member.state == "up" or self._launch is None:  # another engine may have seen it start
            self._started(member, True)
        if news["outcome"] is not None:
            code, stopped, reason = news["outcome"]
            member.end = RankEnd(
                rank=member.rank or 0,
                exit_code=code,
                stopped=stopped,
                reason=reason,
                at=news["ended_at"],
                gone_at=time.time() - news.get("ended_ago_s", 0.0),
                done=news.get("done", False),
            )
        else:
            member.ask()

    def _started(self, member: Member, well: bool) -> None:
        member.started = well
        if not self.up and all(lead.started for lead in self._leads()):
            self.up = True
            self.timings["start"] = time.monotonic() - self._prepared_at

    def _trouble(self, member: Member, problem: Exception) -> None:
        from ray.exceptions import ActorUnavailableError, ObjectLostError, RayActorError

        now = time.monotonic()
        if "failed to import" in str(problem):
            why = str(problem).strip().splitlines()[-1]
            where = member.node or "its node"
            member.ends(None, f"boa-constrictor cannot be imported on {where}: {why}")
        elif isinstance(problem, ActorUnavailableError | ObjectLostError):  # maybe with its node
            if member.silent_since is None:
                member.silent_since = now
            member.ask_at = now + ASK_AGAIN_S
        elif isinstance(problem, RayActorError):
            self._died(member, _said(problem))
        else:
            member.ends(None, f"lost: {_said(problem)}")

    def _died(self, member: Member, why: str) -> None:
        member.dead, member.silent_since = why, time.monotonic()

    # What does not come

    def tick(self) -> None:
        if self.ending is not None:
            if self.in_cluster:
                self.abandon()  # Ray could not be asked the last time
            return
        now = time.monotonic()
        if not self._marker.launched:
            self._tick_before(now)
        for member in self._members:
            overdue = member.ref is not None and now - member.asked_at > OVERDUE_S
            if overdue and self._marker.launched and member.silent_since is None:
                member.silent_since = now  # we may have stood still ourselves: not lost yet
            if member.silent_since is not None and member.end is None:
                self._tick_silent(member, now)
        if self._deadline is not None and now >= self._deadline:
            self._give_up_waiting()
        self._tick_ends()

    def _tick_before(self, now: Seconds) -> None:
        for member in self._members:
            if member.node and not self._cluster.is_alive(member.node):
                self._lost(member)
        if now - self._began > PLACED_S and not self._placed:
            self._placed = self._cluster.placed(self._group) is not None
            if not self._placed:
                assert self._launch is not None
                what = f"{len(self._members)} {self._launch.gpu_type} GPUs"
                reason = f"lost: {what} were not free on their nodes within {PLACED_S:.0f} s"
                self._members[0].ends(None, reason, node_lost=True)
        if now - self._began > PLACED_S + PREPARED_S:
            late = next(member for member in self._members if member.answer is None)
            reason = f"lost: node {late.node} did not start an actor in {PREPARED_S:.0f} s"
            late.ends(None, reason, node_lost=True)

    def _tick_silent(self, member: Member, now: Seconds) -> None:
        assert member.silent_since is not None
        silent = now - member.silent_since
        if member.node and not self._cluster.is_alive(member.node):
            self._lost(member)
        elif member.dead and silent > SETTLE_S:
            member.ends(None, f"lost: its actor on node {member.node} died ({member.dead})")
        elif silent > UNREACHABLE_S:
            reason = f"lost: no answer from node {member.node} for {UNREACHABLE_S:.0f} s"
            member.ends(None, reason, node_lost=True)
        elif self._marker.launched and not member.dead and not member.ref and now >= member.ask_at:
            member.ask()

    def _lost(self, member: Member) -> None:
        member.ends(None, f"lost: node {member.node} is gone", node_lost=True)

    def _tick_ends(self) -> None:
        ends = [member.end for member in self._members if member.end is not None]
        bad = [end for end in ends if end.exit_code != 0]
        if not self._marker.launched:
            if bad:
                self._finish(together(ends))
        elif all(lead.end is not None for lead in self._leads()):
            self._finish(together(ends), max(end.gone_at for end in ends))
        elif bad and not self._failing:
            self._failing = True
            self._tell_to_stop(run_supervisor.FAILED_GRACE_S)

    def _give_up_waiting(self) -> None:
        for member in self._leads():
            if member.end is None:
                reason = f"killed: no answer from node {member.node} after it was told to stop"
                member.ends(-run_supervisor.SIGKILL, reason, stopped=self._grace_s is not None)

    # Endings

    def stop(self, grace_s: Seconds) -> None:
        if self.ending is not None or (self._grace_s is not None and self._grace_s <= grace_s):
            return
        self._grace_s = grace_s
        if not self._marker.launched:
            reason = "stopped before it began"
            self._finish(Ending(exit_code=0, stopped=True, reason=reason))
            return
        self._tell_to_stop(grace_s)

    def _tell_to_stop(self, grace_s: Seconds) -> None:
        for lead in self._leads():
            lead.tell_to_stop(grace_s)
        until = time.monotonic() + grace_s + SLACK_S
        self._deadline = until if self._deadline is None else min(until, self._deadline)

    def _finish(self, ending: Ending, at: Seconds | None = None) -> None:
        """Written down first: then nobody needs the actors any more. `at`: by the wall."""
        self._folders.end(self.key, ending, time.time() if at is None else at)
        self.ending = ending
        self.abandon()

    def _leads(self) -> list[Member]:
        return [member for member in self._members if member.rank is not None]

    def _open_log(self, member: Member) -> None:
        if member.rank is not None:
            folder = self._folders.folder(self.key)
            member.mirror = Mirror(folder, member.rank, self._log_bytes)


def _said(problem: Exception) -> str:
    """Ray's errors are long, and begin with what happened."""
    problem = getattr(problem, "cause", None) or problem
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[0][:200] if lines else type(problem).__name__
