"""The beginning of a run of the local engine: its folders, its files, and the environment that its
processes see."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from boa.engines import launching, users
from boa.engines.environments import NoPlace, Place, find
from boa.engines.folders import RunFolders, remove
from boa.engines.keepers import Keepers, enclose
from boa.engines.passing import passed
from boa.engines.processes import orphans, run_files, run_supervisor
from boa.engines.processes.warm_scripts import Finder, Recipe
from boa.model.runs import Launch
from boa.model.service import RunAs
from boa.packing.unpack import pieces_of, unpack
from boa.private_files import private_folder


@dataclass(frozen=True, slots=True)
class Expected:
    """A run to come whose processes can be forked before it begins."""

    recipe: Recipe
    plans: list[launching.ProcessPlan]


@dataclass(frozen=True, slots=True)
class Beginning:
    """A run that can begin."""

    files: dict[str, bytes]
    """The contents of its folder."""
    recipe: Recipe | None = None
    """The warm parent that can begin it, if one can."""


class Beginnings:
    def __init__(
        self,
        folders: RunFolders,
        *,
        log_bytes: int,
        pass_env: Sequence[str],
        run_as: RunAs | None,
        python: str,
        memory_share: float,
    ) -> None:
        """`python`: for processes of ours; `memory_share`: for state between two runs."""
        self._folders, self._log_bytes = folders, log_bytes
        self._pass_env, self._run_as = tuple(pass_env), run_as
        self._scripts, self._gpus = Finder(), launching.has_gpus()
        if run_as is not None:
            users.passable(folders.root)
        parts = 1 if run_as is None else len({run_as.default, *run_as.teams.values()})
        ledger = os.path.join(folders.root, ".memory")
        self.keepers = Keepers(ledger, python, memory_share / parts, self.inherited())

    def inherited(self) -> dict[str, str]:
        """The service's own environment, as far as jobs see it."""
        more = passed(os.environ, self._pass_env)
        own = () if self._run_as is None else users.OWN_PLACES
        return {name: value for name, value in more.items() if name not in own}

    def of(self, launch: Launch, mark: int, cgroup: str) -> Beginning:
        """Raises NoSuchUser where it is to run as somebody who is gone, NoPlace where its
        environment is not here, BadPackage where its package is damaged, or another."""
        user = None if self._run_as is None else users.find(self._run_as.user_of(launch.team))
        plans = launching.plans(launch, port=launching.free_port(), gpus=self._gpus)
        workdir = launch.spec.workdir or self._folders.work(launch.key.job)
        if launch.package:
            workdir = self._unpacked(launch, user)
        keeper = self._keeper(launch, user)
        place = self._place(launch, workdir, user, keeper)
        if keeper and not enclose(keeper, place.before if launch.spec.image else (), user):
            keeper = ""
        for plan in plans:
            plan["env"] = {**plan["env"], **place.env, **({"BOA_KEEPER": keeper} if keeper else {})}
            plan["argv"] = [*place.before, *plan["argv"]]
        recipe = None
        if user is None:
            with suppress(OSError):  # the job itself will say what is wrong with it
                private_folder(launch.checkpoint_dir)
                if launch.artifacts:
                    private_folder(launch.artifacts)
            if not place.before:
                recipe = self._warm(launch, workdir, plans, place.env)
        else:
            self._hand_over(launch, user)
            for plan in plans:
                plan["env"] = {**user.env, **plan["env"]}
        document = {
            "plans": plans,
            "workdir": workdir,
            "grace_s": launch.spec.grace_s,
            "log_bytes": self._log_bytes,
            "boot": orphans.boot(),
            "mark": mark,
            "cgroup": cgroup,
            "user": None if user is None else users.told(user, _named(launch)),
            "needs": sorted(launch.secrets),  # their values are written nowhere
        }
        files = {
            run_supervisor.LAUNCH: run_files.packed(document),
            run_files.RESERVE: b" " * run_files.RESERVED,
        }
        return Beginning(files, recipe)

    def expected(self, launch: Launch) -> Expected | None:
        """Nothing is changed on the disk: the run before it is there still."""
        if self._run_as is not None or launch.spec.image:
            return None
        job = launch.key.job
        workdir = launch.spec.workdir or self._folders.work(job)
        if launch.package:
            workdir = self._folders.code(job)
        try:
            place = self._place(launch, workdir, None, "")
        except NoPlace:
            return None
        env = {**launching.shared(launch, self.inherited()), **place.env}
        script = self._scripts.find(launch.spec, workdir, env)
        if place.before or script is None or not script.may_wake:
            return None
        return Expected(script.recipe, launching.plans(launch, port=0, gpus=self._gpus))

    def _unpacked(self, launch: Launch, user: users.User | None) -> str:
        """Its package, as it was submitted: whatever an earlier attempt did to its own copy."""
        home = self._folders.home(launch.key.job)
        private_folder(home)
        if user is not None:
            users.passable(home)
        folder = self._folders.code(launch.key.job)
        remove(folder)
        owner = None if user is None else (user.uid, user.gid)
        unpack(pieces_of(launch.package), folder, launch.spec.package, owner=owner)
        return folder

    def _place(self, launch: Launch, workdir: str, user: users.User | None, keeper: str) -> Place:
        """Raises NoPlace."""
        spec, env = launch.spec, launching.shared(launch, self.inherited())
        if not spec.environment and not spec.image:
            return Place()
        return find(
            spec.environment,
            spec.image,
            workdir=workdir,
            env=env,
            home=os.path.expanduser("~") if user is None else user.home,
            folders=list(filter(None, (launch.checkpoint_dir, launch.artifacts, keeper))),
            gpus=self._gpus,
        )

    def _warm(
        self,
        launch: Launch,
        workdir: str,
        plans: list[launching.ProcessPlan],
        more: Mapping[str, str],
    ) -> Recipe | None:
        env = {**launching.shared(launch, self.inherited()), **more}
        script = self._scripts.find(launch.spec, workdir, env)
        if script is None:
            return None
        for plan in plans:
            plan["script"] = list(script.words)
        return script.recipe

    def _keeper(self, launch: Launch, user: users.User | None) -> str:
        """Where it finds memory for its state between two runs; empty: nowhere."""
        home, folder = self._folders.home(launch.key.job), self._folders.keeper(launch.key.job)
        private_folder(home)
        if user is not None:
            users.passable(home)
        return folder if self.keepers.offer(folder, user) else ""

    def _hand_over(self, launch: Launch, user: users.User) -> None:
        """Folders of the job's own become the user's. One that its spec names is made by the user,
        who can make no other than his own.

        No warm parent: it would import as root what a job names, or its supervisors would be the
        job's to kill."""
        users.passable(self._folders.home(launch.key.job))
        users.own(self._folders.work(launch.key.job), user)
        if not launch.spec.checkpoint_dir:
            users.passable(os.path.dirname(launch.checkpoint_dir))
            users.own(launch.checkpoint_dir, user)
        if launch.artifacts:
            users.passable(os.path.dirname(launch.artifacts))
            users.own(launch.artifacts, user)


def _named(launch: Launch) -> list[str]:
    """Folders that the job names itself."""
    return [launch.checkpoint_dir] if launch.spec.checkpoint_dir else []


def packed_secrets(launch: Launch) -> bytes:
    """Values for the supervisor, which go past the disk."""
    return run_files.packed(launch.secrets) if launch.secrets else b""
