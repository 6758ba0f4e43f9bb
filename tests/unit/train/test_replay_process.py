"""Replay jobs as real processes: exact progress, prompt stops, resumption, absent servers."""

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from boa.train import replay
from replaying import DEADLINE_S, PROFILE, SPEED, TOTAL, Process, server

RESCALE_S = PROFILE["rescale_s"]
PREDICTED_S = RESCALE_S + TOTAL / 2.0
"""At width 2, on one node."""
SLOWLY = SPEED / 4
"""Where something has to happen before it ends: seconds, for a busy machine."""


def test_a_replay_takes_the_time_that_its_profile_predicts(tmp_path: Path) -> None:
    took = []
    for attempt in range(5):  # a busy machine may hold any one of them up
        folder = tmp_path / str(attempt)
        folder.mkdir()
        run = Process(folder, BOA_WIDTH=2, BOA_SPEED=SPEED / 2)
        assert run.end() == 0
        again = Process(folder, BOA_WIDTH=2)  # with nothing to do: what any process takes just now
        assert again.end() == 0
        took.append((run.took * SPEED / 2, again.took * SPEED / 2))
        assert took[-1][0] >= PREDICTED_S, "never less"
        if took[-1][0] <= PREDICTED_S * 1.03 + took[-1][1]:
            return
    raise AssertionError(f"took {took} s, not {PREDICTED_S} s")


def test_reports_are_exact_however_late_they_are_sent(tmp_path: Path) -> None:
    with server() as (reports, url):
        run = Process(tmp_path, BOA_WIDTH=2, BOA_REPORT_URL=url, BOA_REPORT_TOKEN="secret")
        assert run.end() == 0
    first, last = reports.all[0], reports.all[-1]
    assert (first["epoch"], first["progress"], first["units"]) == (0, 0.0, 0.0)
    assert (last["epoch"], last["progress"], last["units"]) == (2, 100.0, TOTAL)
    assert last["uptime_s"] - first["uptime_s"] == pytest.approx(TOTAL / 2.0)
    assert reports.tokens == {"Bearer secret"}
    assert reports.connections == 1, "kept from report to report"
    assert "done" in run.stdout


def test_reports_rise_and_name_every_boundary(tmp_path: Path) -> None:
    with server() as (reports, url):
        assert Process(tmp_path, BOA_WIDTH=1, BOA_REPORT_URL=url, BOA_ATTEMPT=7).end() == 0
    assert {report["attempt"] for report in reports.all} == {7}
    assert [report["units"] for report in reports.all] == [0.0, 100.0, 300.0, TOTAL]
    assert [report["epoch"] for report in reports.all] == [0, 1, 2, 2]
    since = [report["uptime_s"] - reports.all[0]["uptime_s"] for report in reports.all]
    assert since == pytest.approx([0.0, 100.0, 300.0, TOTAL])


def test_epochs_that_fly_past_share_reports(tmp_path: Path) -> None:
    row = [[1.0]] * 1000
    many = {**PROFILE, "work": [0.4] * 1000, "rates": {"T4": {"one_node": row, "across": row}}}
    with server() as (reports, url):
        assert Process(tmp_path, many, BOA_REPORT_URL=url).end() == 0
    assert 2 < len(reports.all) < 40
    assert reports.all[-1]["epoch"] == 999
    assert reports.all[-1]["units"] == pytest.approx(400.0)


def test_sigterm_saves_the_moment_and_another_width_goes_on_from_it(tmp_path: Path) -> None:
    with server() as (reports, url):
        narrow = Process(tmp_path, BOA_WIDTH=1, BOA_REPORT_URL=url, BOA_SPEED=SLOWLY)
        reports.wait(units=100.0)
        narrow.signal(signal.SIGTERM)
        assert narrow.end() == 0
        epoch, progress = narrow.saved()
        done = sum(PROFILE["work"][:epoch]) + progress
        assert 100.0 < done < TOTAL, "at once"
        assert done <= narrow.took * SLOWLY - RESCALE_S, "no faster than its rate of 1"

        reports.all.clear()
        wide = Process(tmp_path, BOA_WIDTH=2, BOA_REPORT_URL=url, BOA_ATTEMPT=2)
        assert wide.end() == 0
    first, last = reports.all[0], reports.all[-1]
    assert (first["epoch"], first["progress"], first["units"]) == (epoch, progress, 0.0)
    assert last["units"] == pytest.approx(TOTAL - done)
    assert last["uptime_s"] - first["uptime_s"] == pytest.approx((TOTAL - done) / 2.0)
    assert wide.took * SPEED >= RESCALE_S + (TOTAL - done) / 2.0, "rescaling takes its time again"
    assert wide.saved() == (2, 100.0)


def test_sigkill_loses_nothing_that_was_reported(tmp_path: Path) -> None:
    with server() as (reports, url):
        killed = Process(tmp_path, BOA_WIDTH=1, BOA_REPORT_URL=url, BOA_SPEED=SLOWLY)
        reports.wait(units=100.0)
        killed.signal(signal.SIGKILL)
        assert killed.end() == -signal.SIGKILL
        told = max(report["units"] for report in reports.all)
        reports.all.clear()
        again = Process(tmp_path, BOA_WIDTH=2, BOA_REPORT_URL=url, BOA_ATTEMPT=2)
        assert again.end() == 0
    resumed = reports.all[0]
    assert sum(PROFILE["work"][: resumed["epoch"]]) + resumed["progress"] >= told
    assert reports.all[-1]["units"] <= TOTAL - told


def checkpointed(folder: Path, text: str) -> None:
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / replay.CHECKPOINT).write_text(text)


def test_a_stop_while_it_rescales_changes_nothing(tmp_path: Path) -> None:
    checkpointed(tmp_path, '{"epoch": 1, "progress": 50.0}')
    run = Process(tmp_path, {**PROFILE, "rescale_s": 1e6})
    run.until_it_said("starting")
    run.signal(signal.SIGTERM)
    assert run.end() == 0
    assert run.saved() == (1, 50.0)


def test_rescaling_counts_from_when_it_was_decided(tmp_path: Path) -> None:
    slow = {**PROFILE, "rescale_s": 1e6}
    ago = time.time() - 2e6 / SPEED
    run = Process(tmp_path, slow, BOA_WIDTH=2, BOA_DECIDED_AT=ago)
    assert run.end() == 0, "all of it was over before the process began"


def test_a_training_that_is_done_ends_without_rescaling(tmp_path: Path) -> None:
    checkpointed(tmp_path, '{"epoch": 2, "progress": 100.0}')
    assert Process(tmp_path, {**PROFILE, "rescale_s": 1e6}).end() == 0


def test_half_a_checkpoint_is_not_loaded(tmp_path: Path) -> None:
    checkpointed(tmp_path, '{"epoch": 2, "prog')
    with server() as (reports, url):
        run = Process(tmp_path, BOA_WIDTH=2, BOA_REPORT_URL=url)
        assert run.end() == 0
    assert "starting over" in run.stderr
    assert reports.all[-1]["units"] == TOTAL


def test_a_place_that_cannot_be_written_stops_no_training_but_spoils_a_stop(tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / replay.CHECKPOINT).mkdir(parents=True)
    run = Process(tmp_path, BOA_WIDTH=2)
    assert run.end() == 0
    assert "cannot save a checkpoint" in run.stderr
    stopped = Process(tmp_path, {**PROFILE, "work": [1e6] * 3}, BOA_WIDTH=2)
    stopped.until_it_said("epoch 1")
    stopped.signal(signal.SIGTERM)
    assert stopped.end() == 1, "what was not saved is no clean stop"


def test_a_log_that_nobody_reads_any_more_stops_no_training(tmp_path: Path) -> None:
    run = Process(tmp_path, BOA_WIDTH=2)
    run.hang_up()
    assert run.end() == 0
    assert run.saved() == (2, 100.0)


def as_ever(folder: Path) -> float:
    """Seconds that the same takes without any server, on this machine as it is now."""
    plain = folder / "plain"
    plain.mkdir()
    run = Process(plain, BOA_WIDTH=2)
    assert run.end() == 0
    return run.took


def test_a_server_that_is_away_costs_no_time(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens: refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/report"
        waits = []
        for attempt in range(5):  # a busy machine may hold any one of them up
            folder = tmp_path / str(attempt)
            folder.mkdir()
            run = Process(folder, BOA_WIDTH=2, BOA_REPORT_URL=url)
            assert run.end() == 0
            waits.append(run.took - as_ever(folder))
            if waits[-1] < replay.TIMEOUT_S:
                return
    raise AssertionError(f"waited {waits} s for the server")


def test_a_server_that_never_answers_is_given_up_after_a_second(tmp_path: Path) -> None:
    stops, waits = [], []
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(64)
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/report"
        for attempt in range(5):  # a busy machine may hold any one of them up
            folder = tmp_path / str(attempt)
            folder.mkdir()
            run = Process(folder, BOA_WIDTH=2, BOA_REPORT_URL=url)
            run.until_it_said("epoch 1")
            asked = time.monotonic()
            run.signal(signal.SIGTERM)
            assert run.end() == 0
            stops.append(time.monotonic() - asked)
            patient = Process(folder, BOA_WIDTH=2, BOA_REPORT_URL=url)
            assert patient.end() == 0
            waits.append(patient.took - as_ever(folder))
            if min(stops) < 1.0 and min(waits) < 2 * replay.TIMEOUT_S:
                return
    raise AssertionError(f"a stop waited {stops} s for the server, reports {waits} s: once is 1 s")


def test_a_server_that_closes_after_every_answer_gets_every_report(tmp_path: Path) -> None:
    with server("HTTP/1.0") as (reports, url):
        assert Process(tmp_path, BOA_WIDTH=1, BOA_REPORT_URL=url).end() == 0
    assert [report["units"] for report in reports.all] == [0.0, 100.0, 300.0, TOTAL]
    assert reports.connections >= len(reports.all)


def test_a_job_may_have_more_work_than_its_class(tmp_path: Path) -> None:
    with server() as (reports, url):
        run = Process(tmp_path, PROFILE, "--scale", "1.5", BOA_WIDTH=2, BOA_REPORT_URL=url)
        assert run.end() == 0
    assert reports.all[-1]["units"] == pytest.approx(1.5 * TOTAL)


def test_it_runs_outside_of_any_job(tmp_path: Path) -> None:
    run = Process(tmp_path, BOA_CHECKPOINT_DIR="", BOA_GPU_TYPE="", BOA_DECIDED_AT="")
    assert run.end() == 0
    assert not run.checkpoint.exists()


@pytest.mark.parametrize(
    ("profile", "environ", "said"),
    [
        (PROFILE, {"BOA_GPU_TYPE": "H100"}, "BOA_GPU_TYPE: got 'H100'; expected one of T4"),
        (PROFILE, {"BOA_SPEED": "fast"}, "BOA_SPEED: got 'fast'; expected a number > 0"),
        (PROFILE, {"BOA_SPEED": "0"}, "BOA_SPEED: got '0'"),
        (PROFILE, {"BOA_REPORT_URL": "ftp://x"}, "BOA_REPORT_URL"),
        (PROFILE, {"BOA_CHECKPOINT_DIR": "/dev/null/x"}, "BOA_CHECKPOINT_DIR"),
        ({"class": "x"}, {}, "profile.json: KeyError: 'work'; expected a profile"),
        ({**PROFILE, "rates": 3}, {}, "not a profile"),
        ([], {}, "expected a profile"),
    ],
)
def test_what_cannot_be_replayed_is_one_line(
    tmp_path: Path, profile: Any, environ: dict[str, str], said: str
) -> None:
    run = Process(tmp_path, profile, **environ)
    assert run.end() == 2
    assert run.stderr.startswith("error: ")
    assert said in run.stderr
    assert run.stderr.count("\n") == 1


def test_wrong_arguments_are_told_the_usage(tmp_path: Path) -> None:
    run = Process(tmp_path, PROFILE, "--fast")
    assert run.end() == 2
    assert run.stderr.startswith("usage: ")


def test_it_can_be_named_as_a_module_too(tmp_path: Path) -> None:
    file = tmp_path / "profile.json"
    file.write_text(json.dumps({**PROFILE, "rescale_s": 0}))
    done = subprocess.run(
        [sys.executable, "-m", "boa.train.replay", str(file)],
        env={"BOA_SPEED": "1e6"},
        capture_output=True,
        timeout=DEADLINE_S,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
