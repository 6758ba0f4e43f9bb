"""Looked at when a job is submitted: whether what it names is there, as far as can be known.

A service on the machine that jobs run on knows its folders, commands and environments; one whose
jobs run on other machines knows the packages that it was sent, and no more. Where a folder cannot
be seen by everybody, a service that runs jobs as others (`run_as`) says nothing of what is in it.
"""

import os
import re
import shutil
from collections.abc import Callable, Mapping
from typing import Protocol

from boa.engines.environments import NoPlace, find
from boa.errors import InputError
from boa.formats.job import SHELL
from boa.model.access import Caller
from boa.model.job import JobSpec
from boa.model.job_spec import PACK
from boa.runtime.packages import PackageShelf

_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_OTHERS_PASS = 0o001
_HAS = {"venv": "bin/python", "uv": "pyproject.toml"}
"""Files of an environment's folder, by kinds that may be in a package."""
TO_UPLOAD = (
    "the SHA-256 of a package that was uploaded (PUT /api/v1/packages/DIGEST): `boa submit` and "
    "the Python client do that with workdir"
)


class Places(Protocol):
    def check(self, spec: JobSpec, by: Caller, at: str = "") -> None:
        """Raises InputError, its field after `at`."""
        ...


class Anywhere:
    """Nothing is known: for engines that only act."""

    def check(self, spec: JobSpec, by: Caller, at: str = "") -> None:
        return


class KnownPlaces:
    def __init__(
        self,
        shelf: PackageShelf,
        environment: Callable[[], Mapping[str, str]] | None,
        *,
        as_others: bool = False,
        engine: Callable[[JobSpec, int], None] | None = None,
    ) -> None:
        """`environment`: what jobs see of the service's, on the same machine; None: they run
        elsewhere. `as_others`: as other users than the service's. `engine`: raises InputError of
        what it cannot run, told of the job and of the bytes of its package."""
        self._shelf, self._environment, self._as_others = shelf, environment, as_others
        self._engine = engine

    def check(self, spec: JobSpec, by: Caller, at: str = "") -> None:
        paths: frozenset[str] | None = None
        size = 0
        if spec.package == PACK:
            raise InputError(f"{at}package", PACK, TO_UPLOAD)
        if spec.package:
            kept = self._shelf.get(spec.package, by, f"{at}package", using=True)
            paths, size = kept.paths, kept.size
            _check_packed(spec, paths, at)
        if self._engine is not None:
            try:
                self._engine(spec, size)
            except InputError as no:
                raise InputError(f"{at}{no.field}", no.value, no.expected, no.problem) from None
        if spec.after:
            return  # what it waits for may make the rest
        if self._environment is not None:
            env = {**self._environment(), **spec.env}
            self._check_here(spec, env, paths, at)
        self._check_script(spec, paths, at)

    def _check_here(
        self, spec: JobSpec, env: Mapping[str, str], paths: frozenset[str] | None, at: str
    ) -> None:
        if spec.workdir and self._can_tell(spec.workdir) and not os.path.isdir(spec.workdir):
            expected = "a folder that is there, on the machine of the service"
            raise InputError(f"{at}workdir", spec.workdir, expected)
        if spec.environment and (self._as_others or _is_packed(spec, paths)):
            return  # in the package, or in a folder of somebody else's
        if spec.image.endswith(".sif") and not os.path.isabs(spec.image) and paths is not None:
            return
        if spec.image and not self._can_tell(os.path.join(spec.workdir or "/", spec.image)):
            return  # where it is, should it be a file
        try:
            place = find(
                spec.environment,
                spec.image,
                workdir=spec.workdir or "/",
                env=env,
                home=os.path.expanduser("~"),
            )
        except NoPlace as missing:
            expected = missing.expected
            field = f"{at}{missing.which}"
            raise InputError(field, missing.value, expected, f"{missing}") from None
        if not spec.image:
            self._check_command(spec, {**env, **place.env}, paths, at)

    def _check_command(
        self, spec: JobSpec, env: Mapping[str, str], paths: frozenset[str] | None, at: str
    ) -> None:
        """The first of a list of words; the shell itself says what it does not find."""
        command = spec.run[0]
        if tuple(spec.run[:-1]) == SHELL or spec.launcher == "torchrun":
            return
        if os.sep not in command:
            there = shutil.which(command, path=env.get("PATH")) is not None
            expected = "a command that is on the PATH of jobs, or a path"
        elif paths is not None and not os.path.isabs(command):
            there = os.path.normpath(command) in paths
            expected = "a command in the package"
        else:
            place = os.path.join(spec.workdir or "/", command)
            is_ours = os.path.isabs(command) or bool(spec.workdir)
            there = not is_ours or not self._can_tell(place) or os.access(place, os.X_OK)
            expected = "a command that is there, and may be executed"
        if not there:
            raise InputError(f"{at}run", command, expected, f"there is no command {command}")

    def _check_script(self, spec: JobSpec, paths: frozenset[str] | None, at: str) -> None:
        """`python train.py`: where that is to be."""
        words = spec.run if tuple(spec.run[:-1]) != SHELL else spec.run[-1].split()
        if len(words) < 2 or not _PYTHON.fullmatch(os.path.basename(words[0])):
            return
        script = words[1]
        if not script.endswith(".py") or any(sign in script for sign in "$*?~\"'`"):
            return
        if paths is not None and not os.path.isabs(script):
            if os.path.normpath(script) not in paths:
                expected = "a script of the package: is it named in .boaignore?"
                raise InputError(f"{at}run", script, expected, f"there is no {script} in it")
            return
        place = os.path.join(spec.workdir, script)
        if self._environment is None or not os.path.isabs(place) or not self._can_tell(place):
            return
        if not os.path.isfile(place):
            raise InputError(
                f"{at}run", script, "a script that is there", f"there is no script {place}"
            )

    def _can_tell(self, path: str) -> bool:
        """Whether anybody may know what is there: or a service of root's would tell its callers."""
        if not self._as_others:
            return True
        folder = os.path.dirname(os.path.abspath(path))
        while True:
            try:
                mode = os.stat(folder).st_mode
            except OSError:
                mode = _OTHERS_PASS  # not there either
            if not mode & _OTHERS_PASS:
                return False
            if folder == "/":
                return True
            folder = os.path.dirname(folder)


def _is_packed(spec: JobSpec, paths: frozenset[str] | None) -> bool:
    """Whether its environment is looked for in the copy of its package."""
    kind, _, name = spec.environment.partition(":")
    return paths is not None and kind in _HAS and not os.path.isabs(os.path.expanduser(name))


def _check_packed(spec: JobSpec, paths: frozenset[str], at: str) -> None:
    if not _is_packed(spec, paths):
        return
    kind, _, name = spec.environment.partition(":")
    needed = os.path.normpath(os.path.join(name, _HAS[kind]))
    if needed not in paths:
        expected = f"{kind}:/PATH, or what the package has: virtual environments stay behind"
        why = f"there is no {needed} in the package"
        raise InputError(f"{at}environment", spec.environment, expected, why)
