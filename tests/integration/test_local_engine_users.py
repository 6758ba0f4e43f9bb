"""Jobs of the local engine as other users: what they may do to the service and to each other."""

import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import boa
from boa.engines import users
from boa.errors import InputError
from boa.model.service import RunAs
from local_runs import Runs, alive, until
from other_users import passable_folder

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs as others")
SOMEBODY, OTHER = "nobody", "daemon"


@pytest.fixture
def place() -> Iterator[Path]:
    with passable_folder() as folder:
        yield folder


@pytest.fixture
def runs(place: Path) -> Iterator[Runs]:
    runs = Runs(place, run_as=RunAs(default=SOMEBODY, teams={"vision": OTHER}))
    yield runs
    runs.close()


def said(runs: Runs, script: str, **given: Any) -> str:
    key = runs.start("sh", "-c", script, **given)
    runs.end(key)
    return runs.log(key).strip()


def test_a_job_is_the_user_that_it_is_to_run_as_in_every_way(runs: Runs) -> None:
    found = pwd.getpwnam(SOMEBODY)
    script = 'id -u; id -g; id -G; echo "$HOME" "$USER" "$LOGNAME" "$SHELL"; umask; pwd'
    uid, gid, groups, names, mask, folder = said(runs, script).splitlines()
    assert (int(uid), int(gid)) == (found.pw_uid, found.pw_gid)
    assert set(groups.split()) == set(map(str, os.getgrouplist(SOMEBODY, found.pw_gid)))
    assert names == f"{found.pw_dir} {SOMEBODY} {SOMEBODY} {found.pw_shell}"
    assert (int(mask, 8), folder) == (0o077, str(runs.root / "runs" / "1" / "work"))


def test_teams_run_as_their_own_users_and_keep_their_checkpoints_from_each_other(
    runs: Runs,
) -> None:
    keep = 'id -un; echo mine > "$BOA_CHECKPOINT_DIR/kept"; echo $?'
    assert said(runs, keep, team="vision").split() == [OTHER, "0"]
    theirs = runs.root / "checkpoints" / "1"
    assert (theirs.owner(), stat.S_IMODE(theirs.stat().st_mode)) == (OTHER, 0o700)
    look = f"id -un; cat {theirs}/kept; ls {theirs}; ls {theirs.parent}; echo $?"
    answer = said(runs, look, job="2", team="audio")
    assert answer.startswith(SOMEBODY)
    assert "mine" not in answer
    assert answer.count("Permission denied") == 3


def test_a_job_can_neither_see_nor_write_the_files_of_its_run(runs: Runs) -> None:
    script = """
        for name in outcome launch reserve 0.log lock; do echo x > ../1/$name && echo WRITTEN; done
        ls ../1 && echo LISTED; ls .. && echo LISTED; ls ../.. && echo LISTED
        mv ../1 ../2 && echo MOVED; mkdir ../3 && echo MADE; cat ../../.runs/* && echo READ
        exit 7
    """
    key = runs.start("sh", "-c", script)
    assert runs.end(key).exit_code == 7, "and that is what the outcome says"
    text = runs.log(key)
    assert not [word for word in ("WRITTEN", "LISTED", "MOVED", "MADE", "READ") if word in text]
    assert runs.folder(key).owner() == "root"


def test_a_job_cannot_signal_its_supervisor_nor_look_into_it(runs: Runs) -> None:
    go = runs.root / "go"
    os.mkfifo(go)
    go.chmod(0o644)
    script = f"read pid < {go}; kill -9 $pid; cat /proc/$pid/environ; echo over"
    key = runs.start("sh", "-c", script)
    runs.until_up(key)
    go.write_text(f"{runs.supervisor(key)}\n")
    assert runs.end(key).exit_code == 0
    assert "over" in runs.log(key)
    assert "not permitted" in runs.log(key)
    assert "Permission denied" in runs.log(key)


def test_a_folder_that_the_user_may_not_enter_ends_the_job_with_its_name(
    runs: Runs, place: Path
) -> None:
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    end = runs.end(runs.start("true", workdir=str(closed)))
    assert end.exit_code == 126
    assert end.reason == f"cannot start {closed} (as user {SOMEBODY}): Permission denied"


def test_a_checkpoint_folder_that_a_job_names_is_made_by_its_user_or_not_at_all(
    runs: Runs, place: Path
) -> None:
    open_to_all = place / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o1777)
    for job, folder in (("1", open_to_all / "mine"), ("2", place / "not-mine")):
        launch = runs.launch("true", job=job, checkpoint_dir=str(folder))
        launch = replace(launch, checkpoint_dir=str(folder))
        runs.engine.start(launch)
        runs.end(launch.key)
    assert (open_to_all / "mine").owner() == SOMEBODY
    assert not (place / "not-mine").exists()


def test_what_a_job_began_is_found_and_killed_though_it_is_another_users(runs: Runs) -> None:
    hidden = "env -i setsid sh -c 'echo $$; exec sleep 1000' & wait"
    key = runs.start("sh", "-c", hidden)
    runs.until_up(key)
    until(lambda: runs.log(key).strip().isdigit())
    survivor = int(runs.log(key))
    os.kill(runs.supervisor(key), 9)
    runs.end(key)
    assert not alive(survivor)


KEEPING = """
import os, sys, threading, time
from pathlib import Path
from boa.train.keeper.client import Later, begun
client = begun(Path(os.environ["BOA_KEEPER"]), threading.Event())
while True:
    try:
        memory = client.reserve(1000)
        break
    except Later:
        time.sleep(0.01)
client.keep(memory.number, "first")
written = "id -u; id -G; echo $HOME; pwd; cat /proc/$PPID/status"
client.write("first", ["sh", "-c", f"({written}) > $BOA_CHECKPOINT_DIR/new; "
             "mv $BOA_CHECKPOINT_DIR/new $BOA_CHECKPOINT_DIR/written"],
             {"BOA_CHECKPOINT_DIR": os.environ["BOA_CHECKPOINT_DIR"]})
"""


def test_a_keeper_and_what_it_is_told_to_run_are_the_user_that_the_job_runs_as(
    runs: Runs,
) -> None:
    found = pwd.getpwnam(OTHER)
    python = shutil.which("python3", path="/usr/bin:/bin")
    if python is None or not _can_keep(python):
        pytest.skip("no Python that others can run")
    here = {"PYTHONPATH": str(Path(boa.__file__).parents[1])}
    key = runs.start(python, "-c", KEEPING, team="vision", env=here)
    assert runs.end(key).exit_code == 0, runs.log(key)
    folder = runs.root / "runs" / "1" / "keeper"
    ledger = runs.root / "runs" / ".memory" / str(found.pw_uid)
    for own in (folder, ledger):
        assert (own.owner(), stat.S_IMODE(own.stat().st_mode)) == (OTHER, 0o700)
    written = runs.root / "checkpoints" / "1" / "written"
    until(written.exists)
    uid, groups, home, where, *keeper = written.read_text().splitlines()
    assert int(uid) == found.pw_uid
    assert set(groups.split()) == set(map(str, os.getgrouplist(OTHER, found.pw_gid)))
    assert (home, where) == (found.pw_dir, "/")
    assert f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}" in keeper, "in every way"
    assert "CapEff:\t0000000000000000" in keeper
    shutil.rmtree(folder)  # then it ends


def _can_keep(python: str) -> bool:
    """As another user, in a version that is supported."""
    asked = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
    return subprocess.run(asked, user=OTHER, cwd="/", check=False).returncode == 0


def test_nobody_is_asked_for_who_is_not_there(place: Path) -> None:
    with pytest.raises(InputError, match=r"^run_as: got 'no-such-user'; expected an existing user"):
        users.check(RunAs(default="no-such-user"))
    with pytest.raises(InputError, match=r"^run_as\.teams\.vision: got 'gone'"):
        users.check(RunAs(default=SOMEBODY, teams={"vision": "gone"}))
    with pytest.raises(InputError, match=r"is root; .* root only by that name"):
        users.check(RunAs(default="0"))
    users.check(RunAs(default="root"))
    users.check(RunAs(default=str(pwd.getpwnam(SOMEBODY).pw_uid)))


def test_a_data_folder_that_users_cannot_get_to_is_refused(place: Path) -> None:
    (place / "closed").mkdir(mode=0o700)
    (place / "closed" / "data").mkdir()
    users.check_reach(RunAs(default=SOMEBODY), place)
    with pytest.raises(InputError, match=f"--data: user {SOMEBODY} cannot get there"):
        users.check_reach(RunAs(default=SOMEBODY), place / "closed" / "data")


def test_a_user_who_has_gone_meanwhile_fails_the_job_and_says_so(place: Path) -> None:
    runs = Runs(place, run_as=RunAs(default="gone-by-now"))
    end = runs.end(runs.start("true"))
    assert (end.exit_code, end.reason) == (None, "there is no user gone-by-now on this machine")
    runs.close()
