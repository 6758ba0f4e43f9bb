"""The parts of the Ray engine that need no cluster."""

import io
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa import raylink
from boa._version import __version__
from boa.engines.gang import Ending, RankEnd, together
from boa.engines.mirror import Mirror
from boa.engines.ray import prepared
from boa.engines.ray.folders import Folders, Marker
from boa.errors import InputError
from boa.model.job import JobSpec, Launcher
from boa.model.runs import Launch, NodeSlots, RunEvent, RunKey
from live import Live, profile, spec
from replacing import KINDS, make, promptly

KEY = RunKey("1", 1)

# How a run ended

ENDS = st.builds(
    RankEnd,
    rank=st.integers(0, 9),
    exit_code=st.sampled_from([None, 0, 0, 0, 1, -9]),
    stopped=st.booleans(),
    at=st.floats(0, 100),
)


@given(st.lists(ENDS, min_size=1))
def test_a_run_is_well_only_if_all_its_ranks_are(ends: list[RankEnd]) -> None:
    ending = together(ends)
    assert (ending.exit_code == 0) == all(end.exit_code == 0 for end in ends)
    bad = [end for end in ends if end.exit_code != 0]
    if bad:
        first = min(end.at for end in bad)
        assert ending.exit_code in {end.exit_code for end in bad if end.at == first}
    else:
        assert ending.stopped == any(end.stopped for end in ends)


@given(st.lists(ENDS), st.integers(0, 9))
def test_a_lost_node_is_the_reason_whatever_else_went_wrong(ends: list[RankEnd], at: int) -> None:
    lost = RankEnd(rank=0, exit_code=None, reason="node gone", at=1000.0, node_lost=True)
    ending = together([*ends[:at], lost, *ends[at:]])
    assert ending == Ending(exit_code=None, stopped=False, reason="node gone", node_lost=True)


# What each rank is to run


def answer(node: str, gpu: str, **other: Any) -> prepared.Answer:
    common = {"version": __version__, "ip": f"10.0.0.{node}", "host": f"host{node}"}
    port = 20_000 + int(node)
    told = {"node": node, "gpus": [gpu], "has_gpus": True, "port": port, "environment": {}}
    return {**common, **told, "shared": True, **other}


def launch(launcher: Launcher, width: int) -> Launch:
    return Launch(
        key=KEY,
        spec=JobSpec(job_class="c", run=("train",), launcher=launcher),
        gpu_type="T4",
        slots=(NodeSlots(0, tuple(range(width))),),
        checkpoint_dir="/checkpoints",
    )


def planned(launcher: Launcher, answers: Sequence[prepared.Answer]) -> list[tuple[Any, ...]]:
    names = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "CUDA_VISIBLE_DEVICES", "MASTER_ADDR")
    plans = prepared.plans(launch(launcher, len(answers)), answers)
    return [(number, *(plan["env"].get(name) for name in names)) for number, plan in plans]


SCATTERED = [answer("7", "3"), answer("5", "MIG-1"), answer("7", "0")]


def test_ranks_of_a_node_follow_each_other_wherever_ray_put_them() -> None:
    assert planned("workers", SCATTERED) == [
        (0, "0", "0", "2", "3,0", "10.0.0.7"),
        (2, "1", "1", "2", "3,0", "10.0.0.7"),
        (1, "2", "0", "1", "MIG-1", "10.0.0.7"),
    ]


def test_a_single_process_has_the_gpus_of_its_own_node() -> None:
    assert planned("single", SCATTERED) == [(0, "0", "0", "1", "3,0", "10.0.0.7")]


def test_every_node_has_a_torchrun_that_knows_the_first() -> None:
    plans = prepared.plans(launch("torchrun", 3), SCATTERED)
    assert [number for number, _ in plans] == [0, 1]
    assert [plan["rank"] for _, plan in plans] == [0, 2]
    assert [plan["argv"][1:6] for _, plan in plans] == [
        ["--nnodes=2", f"--node-rank={index}", f"--nproc-per-node={width}", *master]
        for index, width in ((0, 2), (1, 1))
        for master in [["--master-addr=10.0.0.7", "--master-port=20007"]]
    ]
    assert [plan["env"]["CUDA_VISIBLE_DEVICES"] for _, plan in plans] == ["3,0", "MIG-1"]


def test_gpus_that_are_only_counted_are_not_named() -> None:
    (plan,) = prepared.plans(launch("workers", 1), [answer("1", "0", has_gpus=False)])
    assert "CUDA_VISIBLE_DEVICES" not in plan[1]["env"]


def test_threads_that_the_node_has_set_stay_set() -> None:
    eight = {"OMP_NUM_THREADS": "8"}
    for seen, wanted in ((eight, None), ({}, "1")):
        answers = [answer("1", "0", environment=seen), answer("1", "1", environment=seen)]
        plans = prepared.plans(launch("workers", 2), answers)
        assert {plan["env"].get("OMP_NUM_THREADS") for _, plan in plans} == {wanted}


def problem(*answers: prepared.Answer, url: str = "http://boa:8420/report") -> str:
    told = replace(launch("workers", len(answers)), env={"BOA_REPORT_URL": url})
    return prepared.problem(told, answers, here="host0")


def test_a_node_of_another_version_is_named() -> None:
    said = problem(answer("1", "0"), answer("2", "0", version="0.1"))
    assert said.startswith(
        f"node host2 (10.0.0.2) has boa-constrictor 0.1, the service {__version__}"
    )


def test_a_node_that_does_not_share_the_checkpoints_is_named() -> None:
    said = problem(answer("1", "0"), answer("2", "0", shared=False))
    assert said.startswith("node host2 (10.0.0.2) does not see what the service writes to /check")
    assert problem(answer("1", "0")) == ""


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/r", "http://[::1]:1/r", "http://localhost/r"])
def test_a_node_that_could_only_report_to_itself_is_named(url: str) -> None:
    said = problem(answer("0", "0"), answer("2", "0"), url=url)
    assert said.startswith(f"node host2 (10.0.0.2) cannot report to {url}")
    assert problem(answer("0", "0"), url=url) == ""


# What is kept


@given(
    pieces=st.lists(st.binary(min_size=1, max_size=900), max_size=12),
    restarts=st.sets(st.integers(0, 12)),
    again=st.integers(0, 100),
)
def test_output_in_pieces_is_the_same_across_restarts(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], restarts: set[int], again: int
) -> None:
    folder = str(tmp_path_factory.mktemp("log"))
    mirror = Mirror(folder, 0, 100_000)
    whole = b"x" * 10 + b"".join(pieces)
    mirror.take(0, whole[:10])
    for number, piece in enumerate(pieces):
        if number in restarts:
            mirror = Mirror(folder, 0, 100_000)
        first = max(mirror.seen - again, 0)  # told again, in part
        mirror.take(first, whole[first : mirror.seen + len(piece)])
        assert mirror.fd == -1
    assert Path(folder, "0.log").read_bytes() == whole


def test_a_log_that_was_turned_over_is_gone_on_with(tmp_path: Path) -> None:
    mirror = Mirror(str(tmp_path), 3, 4096)
    for number in range(100):
        line = f"{number:>99}\n".encode()
        assert mirror.seen == number * 100
        mirror.take(mirror.seen, line)
        mirror = Mirror(str(tmp_path), 3, 4096)
    parts = [(tmp_path / name).read_text() for name in ("3.old.log", "3.log")]
    assert sum(map(len, parts)) <= 4096
    assert parts[1].endswith(" 99\n")


@pytest.mark.parametrize("kind", KINDS)
def test_output_into_what_is_no_plain_file_is_lost_and_nobody_waits(
    tmp_path: Path, kind: str
) -> None:
    make(kind, tmp_path / "0.log")
    mirror = promptly(lambda: Mirror(str(tmp_path), 0, 4096))
    promptly(lambda: mirror.take(0, b"first\n"))
    assert mirror.lost == len(b"first\n")
    if kind == "link":
        assert (tmp_path / "elsewhere").read_text() == "somebody else's"


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_notes_of_a_run_that_are_no_plain_files_are_as_none(tmp_path: Path, kind: str) -> None:
    folders, key = Folders(tmp_path), RunKey("1", 1)
    folders.begin(key, Marker(tag="a"))
    run = Path(folders.folder(key))
    make(kind, Path(folders.marker_of(key)))
    make(kind, run / "outcome")
    assert promptly(lambda: folders.marker(key)) == Marker()
    assert promptly(lambda: folders.ended(key)) is None
    make(kind, run / "outcome.new")
    ending = Ending(exit_code=3, stopped=False, reason="…")
    promptly(lambda: folders.end(key, ending, 1.0))
    assert folders.ended(key) == ending


def test_output_that_was_not_kept_is_counted(tmp_path: Path) -> None:
    mirror = Mirror(str(tmp_path), 0, 4096)
    mirror.take(0, b"first\n")
    mirror.take(1000, b"later\n")
    assert mirror.seen == 1006
    assert Mirror(str(tmp_path), 0, 4096).seen == 1006
    assert (tmp_path / "0.old.log").read_bytes() == b"first\n"
    assert (tmp_path / "0.log").read_text().startswith("[boa] 1000 bytes came before this line")


def test_a_marker_cut_off_counts_as_nothing_started(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    marker = Marker(tag="t", nodes=["a"], leads=[(0, 0)], launched=True)
    folders.begin(KEY, marker)
    assert folders.known() == [KEY]
    assert replace(folders.marker(KEY), leads=marker.leads) == marker
    (tmp_path / ".runs" / "1.1").write_text('{"tag": "t", "lau')
    assert not folders.marker(KEY).launched


def test_how_a_run_ended_takes_no_more_space_than_was_set_aside(tmp_path: Path) -> None:
    folders, ending = Folders(tmp_path), Ending(exit_code=3, stopped=False, reason="é" * 100)
    folders.begin(KEY, Marker())
    (reserve,) = (tmp_path / "1/1").iterdir()
    before = reserve.stat()
    folders.end(KEY, ending, at=time.time() - 100)
    (outcome,) = (tmp_path / "1/1").iterdir()
    assert (outcome.stat().st_ino, outcome.stat().st_size) == (before.st_ino, before.st_size)
    assert folders.ended(KEY) == ending
    assert 100 <= folders.age(KEY) < 110


# What the service makes of it


def test_lost_nodes_never_fail_a_job(lives: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    live: Live = lives(profile("long", work=(36_000.0,)), backoff_s=5.0)
    poll = live.engine.poll

    def lost() -> list[RunEvent]:
        events: Sequence[RunEvent] = poll()
        return [replace(event, node_lost=event.ended, reason="lost: gone") for event in events]

    monkeypatch.setattr(live.engine, "poll", lost)
    job = live.submit(spec("long", retries=0))
    for attempt in (1, 2, 3):
        live.engine.kill(RunKey(job, attempt), exit_code=None)
        live.settle()
        assert live.job(job).state == "waiting"
        assert live.job(job).reason == "lost: gone; next try in 5 s"
        live.advance(6.0, tick=1.0)
        assert live.job(job).attempts == attempt + 1
        assert live.job(job).failures == 0
    assert live.job(job).restarts == 3


def test_a_ray_client_address_is_refused_with_the_one_that_works() -> None:
    with pytest.raises(InputError, match="HOST:PORT of the head"):
        raylink.connect("ray://10.0.0.1:10001", "boa")


def test_what_ray_prints_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    stream = io.StringIO()
    stdout = raylink._NotForRay(stream)
    caplog.set_level("INFO", "boa.ray")
    said = ("\x1b[33m(raylet)\x1b[0m Raylet is terminated.\n    more", "\n")
    thread = threading.Thread(target=lambda: [stdout.write(text) for text in said], name="ray_x")
    thread.start()
    thread.join()
    print("ours", file=stdout)
    assert stream.getvalue() == "ours\n"
    assert caplog.messages == ["Raylet is terminated."]
