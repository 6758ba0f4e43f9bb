"""One run on the cluster: what its pods are → what happens next.

placing ─> all pods up: the gate opens ─> ranks up ─> over ─> forgotten

Nothing here waits: `see` takes what the cluster has listed, and `tick` sees to what follows.
Without a list nothing is known, so nothing is done, and no time passes.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from boa.engines.gang import Ending, together
from boa.engines.kubernetes.beginning import Beginning, beginning
from boa.engines.kubernetes.cluster import Cluster
from boa.engines.kubernetes.follower import Follower, mirrors_of
from boa.engines.kubernetes.luggage import TooLarge
from boa.engines.kubernetes.manifest import grace
from boa.engines.kubernetes.marker import Marker
from boa.engines.kubernetes.member import Member
from boa.engines.kubernetes.placing import awaited, given_up, watch_broken
from boa.engines.kubernetes.status import PodState, told_by
from boa.engines.kubernetes.template import Template
from boa.engines.processes import run_supervisor
from boa.engines.remote_folders import RemoteFolders
from boa.errors import InputError
from boa.kubelink import Exists, Invalid, KubeTrouble, Refused
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.runs import Launch, RunKey
from boa.private_files import private_folder
from boa.units import Seconds

UP_S: Seconds = 10.0
"""Seconds after which ranks are taken to be up, where their pod's log cannot tell."""
TOLD_S: Seconds = 5.0
"""Seconds after which it is told what a run waits for."""
HEARD_S: Seconds = 3.0
"""Seconds that a stop waits for the log to be followed."""
GAP_S: Seconds = 10.0
"""Between two lists, beyond which the API server was away: that time does not count."""
ELSEWHERE = "its pod was deleted by somebody else"


class KubernetesRun:
    def __init__(
        self,
        key: RunKey,
        cluster: Cluster,
        folders: RemoteFolders[Marker],
        settings: KubernetesSettings,
        template: Template,
        log_bytes: int,
        news: Callable[[], None],
    ) -> None:
        self.key, self.ending = key, folders.ended(key)
        self.up = self.up_told = self.in_cluster = False
        self.hindrance = self.hindrance_told = self.awaits = self.awaits_told = ""
        self.saved_at = self.saved_told = 0.0  # pods report none
        self.timings: dict[str, Seconds] = {}
        self.marker = folders.marker(key)
        self._cluster, self._folders, self._log_bytes = cluster, folders, log_bytes
        self._settings, self._template, self._news = settings, template, news
        self._members = [Member(part) for part in self.marker.parts()]
        self._beginning: Beginning | None = None
        self._began = self._seen_at = time.monotonic()
        self._open_at: Seconds | None = None
        self._fresh = self._failing = False

    @property
    def names(self) -> list[str]:
        """Its pods'."""
        return [member.name for member in self._members]

    @property
    def busy(self) -> bool:
        """Whether something is about to change."""
        return not self.up or self._failing or self.marker.asked_s is not None

    # Beginnings

    def begin(self, launch: Launch) -> None:
        self._folders.begin(self.key)
        unknown = [slot.node for slot in launch.slots if not slot.address]
        if unknown:
            reason = f"lost: node {unknown[0]} is not in the Kubernetes cluster"
            self._finish(Ending(exit_code=None, stopped=False, reason=reason, node_lost=True))
            return
        try:
            self._beginning = beginning(
                launch,
                self._settings,
                self._template,
                workdir=self._folders.work(self.key.job),
                log_bytes=self._log_bytes,
            )
        except (InputError, TooLarge, FileNotFoundError) as trouble:
            self._finish(Ending(exit_code=None, stopped=False, reason=str(trouble)))
            return
        self.marker = self._beginning.marker
        self._members = [Member(part) for part in self.marker.parts()]
        self._folders.mark(self.key, self.marker)
        if launch.artifacts:
            with suppress(OSError):
                private_folder(launch.artifacts)
        self.in_cluster = True
        try:
            for body in self._beginning.secrets:
                self._cluster.create_secret(body)
        except Invalid as nonsense:  # 1 MiB each: asking again would be in vain
            reason = f"its launch cannot be sent to its pods: {nonsense}"
            self._finish(Ending(exit_code=None, stopped=False, reason=reason))
            return
        for member in self._members:
            self._create(member)

    def adopt(self) -> None:
        """Begun by an engine before this one."""
        self.in_cluster = True
        for member in self._members:
            member.created = True

    def _create(self, member: Member) -> None:
        """If its name is taken, it is ours already, or something older is on its way out."""
        assert self._beginning is not None
        try:
            self._cluster.create_pod(self._beginning.pods[member.name])
            member.created, member.refused = True, ""
        except Exists:
            found = self._cluster.pod(member.name)
            member.created = found is not None and found.tag == self.marker.tag
            if found is not None and not member.created:
                member.refused = "an earlier pod of this name is still there"
                self._cluster.remove(found)
        except Refused as refused:  # a quota, say: there may be room soon
            member.refused = str(refused)
        except Invalid as nonsense:
            member.ends(None, f"its pod cannot be made: {nonsense}")

    # What is seen

    def see(self, pods: Mapping[str, PodState]) -> None:
        """All pods of its job that there are."""
        now = time.monotonic()
        if now - self._seen_at > GAP_S:  # nothing was known for so long
            self._began += now - self._seen_at
        self._seen_at, self._fresh = now, True
        for member in self._members:
            found = pods.get(member.name)
            if found is not None and found.tag != self.marker.tag:
                found = None
            if found is not None:
                member.created = True
                member.going = member.going or found.going
                if found.deleted and member.asked_s is None:
                    self._deleted(member, found, now)
            member.pod = found

    def _deleted(self, member: Member, pod: PodState, now: Seconds) -> None:
        """By an engine before this one, or else by somebody else."""
        if self.marker.asked_s is not None:
            member.asked_s, member.asked_at = self.marker.asked_s, now
        elif not member.deleted:
            said = f" ({pod.disruption})" if pod.disruption else ""
            member.deleted = f"stopped: {ELSEWHERE}{said}"

    def tick(self) -> None:
        if self.ending is not None:
            self._force()
            return
        if not self._fresh:
            return
        self._fresh, now = False, time.monotonic()
        for member in self._members:
            if member.end is None:
                self._tick_member(member, now)
        self._tick_gate(now)
        self._tick_up(now)
        self._tick_placing(now)
        self._tick_stop(now)
        self._tick_ends(now)

    def _tick_member(self, member: Member, now: Seconds) -> None:
        pod = member.pod
        if pod is None and not member.created:
            if self._beginning is not None and self.marker.asked_s is None and not self._failing:
                self._create(member)
            return
        if pod is not None and pod.stage == "over":
            self._over(member, pod)
        elif lost := self._cluster.why_lost(member.part.node):
            member.ends(None, f"lost: {lost}", node_lost=True)
            member.forced = True
        elif pod is None:
            self._vanished(member)
        elif pod.stage == "rejected":
            self._rejected(member, pod)
        elif pod.deleted and not member.going:
            self._cluster.remove(pod)  # nobody would say that it has ended
        elif pod.left_behind and member.asked_s is None:
            self._tell_to_stop(member, 0.0)
        elif pod.going:
            self._follow(member)
        watch_broken(member, now)

    def _over(self, member: Member, pod: PodState) -> None:
        outcome = pod.outcome
        assert outcome is not None
        self._follow(member)
        if member.follower is not None:
            member.follower.finish(outcome.seen)
            if outcome.unknown and not member.follower.done:
                return  # a kubelet may have lost its last word, which the log has, too
            if outcome.unknown:
                outcome = told_by(member.follower.end) or outcome
        member.is_over(outcome)
        self.up = self.up or (outcome.up and len(self._leads()) == 1)

    def _vanished(self, member: Member) -> None:
        if member.asked_s is not None or self.marker.asked_s is not None:
            member.ends(0, "stopped before it began", stopped=True)
        else:
            member.ends(None, f"lost: {ELSEWHERE}, and how it ended with it", run_lost=True)

    def _rejected(self, member: Member, pod: PodState) -> None:
        """By the kubelet, which may still hold what the scheduler takes for free: another one."""
        self._cluster.remove(pod, forced=True)
        member.pod, member.created, member.refused = None, False, pod.why
        if self._beginning is None:
            member.ends(None, f"lost: {pod.why}", node_lost=True)

    def _follow(self, member: Member) -> None:
        if member.follower is None and member.part.ranks:
            folder = self._folders.folder(self.key)
            mirrors = mirrors_of(folder, member.part.ranks, self._log_bytes)
            cluster = self._cluster
            member.follower = Follower(
                cluster.kube, cluster.namespace, member.name, mirrors, self._news
            )

    # What follows

    def _tick_gate(self, now: Seconds) -> None:
        """Once all are up, and never before, each learns where the first is."""
        pods = [member.pod for member in self._members]
        if "place" not in self.timings and all(pod and pod.stage != "pending" for pod in pods):
            self.timings["place"] = now - self._began
        going = [pod for pod in pods if pod is not None and pod.going and not pod.left_behind]
        if len(going) == len(pods) and all(pod.address for pod in going) and not self._failing:
            if self._open_at is None:
                self._open_at = now
                self.timings.setdefault("prepare", now - self._began)
            if not self.marker.launched:
                self.marker.launched = True
                self._folders.mark(self.key, self.marker)
            for pod in going if len(pods) > 1 else ():
                if not pod.gate:
                    self._cluster.open_gate(pod.name, self.marker.tag, going[0].address)

    def _tick_up(self, now: Seconds) -> None:
        followers = [lead.follower for lead in self._leads()]
        told = all(follower is not None and follower.up for follower in followers)
        late = self._open_at is not None and now - self._open_at > UP_S
        if not self.up and self.marker.launched and (told or late):
            self.up = True
            self.timings["start"] = now - self._began

    def _tick_placing(self, now: Seconds) -> None:
        if self._open_at is not None or self._failing or self.marker.asked_s is not None:
            return
        if any(member.end is not None or member.going for member in self._members) and (
            self.marker.launched
        ):
            return
        waited_s = now - self._began
        self.awaits = awaited(self._members) if waited_s > TOLD_S else ""
        found = given_up(self.marker, self._members, now, waited_s, self._settings.placed_s)
        if found is not None:
            more = self._cluster.why(found.pod) if found.pod else ""
            reason = f"{found.reason} ({more})" if more else found.reason
            self._members[0].ends(None, reason, unready=not found.by_job)
            self._tell_to_stop(self._members[0], 0.0)

    def _tick_stop(self, now: Seconds) -> None:
        """Tell all that are to stop, as long as there are some that were not told."""
        deleted = any(member.deleted for member in self._members)
        asked_s = self.marker.asked_s
        if asked_s is None and self._failing:
            asked_s = run_supervisor.FAILED_GRACE_S
        elif asked_s is None and deleted:
            asked_s = self.marker.grace_s
        stuck = []
        for member in self._members:
            if asked_s is not None and member.end is None and not member.deleted:
                self._tell_to_stop(member, asked_s)
            if member.is_stuck(now):
                stuck.append(member.name)
        self.hindrance = f"pods that do not end: {', '.join(stuck)}" if stuck else ""

    def _tell_to_stop(self, member: Member, grace_s: Seconds) -> None:
        """Asked twice, the shorter grace holds."""
        if member.asked_s is not None and member.asked_s <= grace_s:
            return
        if member.pod is None:
            if not member.created:
                member.ends(0, "stopped before it began", stopped=True)
            return
        now = time.monotonic()
        if member.going:
            if not member.is_heard(now, HEARD_S):  # a kubelet drops logs with the pods
                return
            seconds = grace(grace_s, self.marker.grace_s)
            self._cluster.end(member.name, member.pod.uid, seconds)
        else:
            self._cluster.remove(member.pod)
        if member.asked_s is None:
            member.asked_at = now
        member.asked_s = grace_s

    def _tick_ends(self, now: Seconds) -> None:
        ends = [member.end for member in self._members if member.end is not None]
        if any(end.exit_code != 0 for end in ends) or (
            ends and all(lead.end is not None for lead in self._leads())
        ):
            self._failing = True  # the others cannot go on, or have nothing to wait for
        if len(ends) < len(self._members):
            return
        logged = [member.is_logged(now) for member in self._members]  # each is to hear of it
        if self.marker.launched and not all(logged):
            return
        at = max(end.gone_at for end in ends)
        told = [lead.end for lead in self._leads() if lead.end is not None]
        self._finish(self._named(together(told or ends)), at)

    def _named(self, ending: Ending) -> Ending:
        """By whom it was stopped, if not by us."""
        deleted = next((member.deleted for member in self._members if member.deleted), "")
        if deleted and ending.stopped and ending.exit_code == 0 and self.marker.asked_s is None:
            return Ending(exit_code=0, stopped=True, reason=deleted)
        return ending

    # Endings

    def stop(self, grace_s: Seconds) -> None:
        asked_s = self.marker.asked_s
        if self.ending is not None or (asked_s is not None and asked_s <= grace_s):
            return
        self.marker.asked_s = grace_s
        if not self.marker.launched:
            reason = "stopped before it began"
            self._finish(Ending(exit_code=0, stopped=True, reason=reason))
            return
        self._folders.mark(self.key, self.marker)
        with suppress(KubeTrouble):  # or else when there is somebody to ask
            self._tick_stop(time.monotonic())

    def leave(self) -> None:
        """Its logs to who comes next."""
        for member in self._members:
            if member.follower is not None:
                member.follower.leave()

    def abandon(self) -> None:
        """Nothing of it may stay in the cluster."""
        self.leave()
        if self.in_cluster:
            # Secrets first: pods tell who comes next of them, and those that run have them already.
            with suppress(Refused):  # GPUs are dearer
                self._cluster.remove_secrets(self.marker.secrets(self._settings.owner, self.key))
            for member in self._members:
                self._remove(member)
        self.in_cluster = False

    def _remove(self, member: Member) -> None:
        pod = member.pod
        if pod is None and member.end is None:  # not seen yet; the answer may have been lost
            pod = self._cluster.pod(member.name)
        if pod is not None and pod.tag == self.marker.tag:  # or it is of a later start
            self._cluster.remove(pod, forced=member.forced)

    def _finish(self, ending: Ending, at: Seconds | None = None) -> None:
        """Written down first: then nobody needs the pods any more. `at`: by the wall."""
        self._folders.end(self.key, ending, time.time() if at is None else at)
        self.ending = ending
        with suppress(KubeTrouble):
            if not self.marker.launched:
                self.abandon()  # nobody will want to see what never began
            self._force()

    def _force(self) -> None:
        """Take away pods of dead nodes, whose kubelets will not."""
        for member in self._members:
            if member.forced and self.in_cluster:
                self._remove(member)
                member.forced = False

    def _leads(self) -> list[Member]:
        return [member for member in self._members if member.part.ranks]
