"""Real processes under the Ray engine, on a real cluster: what they see, how they end."""

import http.server
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from _rays import Rays, fixed_cluster
from boa import raylink
from boa.engines.ray import RayEngine
from boa.model.runs import Launch, RunEvent
from cluster_contract import (  # noqa: F401
    POLITE,
    shell,
    test_a_command_that_is_not_there_says_so,
    test_a_gang_starts_when_all_its_gpus_are_free_and_nothing_of_it_before,
    test_a_node_that_is_not_there_is_no_failure_of_the_job,
    test_a_rank_that_fails_ends_the_gang_with_its_exit_code,
    test_a_run_that_was_being_started_is_started_anew,
    test_a_secret_is_stars_in_the_log_and_in_the_line_that_tells_why,
    test_after_the_grace_time_they_are_killed,
    test_an_end_is_told_until_it_is_forgotten_by_whoever_comes_next,
    test_asked_to_stop_they_get_sigterm_and_may_finish,
    test_output_arrives_and_is_kept_within_its_limit,
    test_secrets_reach_every_rank_and_are_masked_in_what_it_prints,
    test_stopped_before_it_began_a_run_takes_no_gpus,
)
from local_runs import alive, until
from ray_runs import NAMESPACE, RayRuns, raylet_of

pytestmark = pytest.mark.ray

KINDS = [("T4", 2), ("A100", 1), ("A100", 1)]
WITH_CHILD = "sleep 1000 & echo up $$ $!; wait"
"""A shell, and what it began: its process group has both, but only one is the engine's child."""


@pytest.fixture(scope="module")
def rays() -> Iterator[Rays]:
    with fixed_cluster(KINDS) as rays:
        handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
        ray = raylink.connect(rays.address, NAMESPACE)
        now = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
        assert now == handlers, "they are the service's"
        yield rays
        ray.shutdown()


@pytest.fixture
def runs(rays: Rays, tmp_path: Path) -> Iterator[RayRuns]:
    """Node 0 has two T4, nodes 1 and 2 an A100 each."""
    ray = raylink.connect(rays.address, NAMESPACE)
    nodes = [node for node in raylink.nodes(ray) if node.alive and "GPU" in node.resources]
    nodes.sort(key=lambda node: "A100" in node.resources)
    runs = RayRuns(tmp_path, rays.address, [node.id for node in nodes])
    yield runs
    runs.close()


# Where they are


def test_every_node_has_names_and_ports_of_its_own(rays: Rays) -> None:
    nodes = raylink.connect(rays.address, NAMESPACE).nodes()
    count = len(KINDS) + 1
    assert len(nodes) == count, "none was started in vain"
    names = ("RayletSocketName", "ObjectStoreSocketName", "NodeManagerPort", "ObjectManagerPort")
    assert {name: len({node[name] for node in nodes}) for name in names} == dict.fromkeys(
        names, count
    )
    logs = rays.folder.glob("ray/session_2*/logs/dashboard_agent*.log")
    assert len(list(logs)) == count


# What they see


def test_ranks_see_the_variables_promised_and_nothing_of_rays_own(runs: RayRuns) -> None:
    slots = ((2, 1), (1, 1))
    key = runs.start("env", "-0", slots=slots, gpu_type="A100", env={"MINE": "1"}, epochs=7)
    assert runs.end(key).exit_code == 0
    texts = [runs.log(key, rank) for rank in (0, 1)]
    seen = [dict(e.split("=", 1) for e in text.rstrip("\0").split("\0")) for text in texts]
    assert all(env.pop("MASTER_PORT").isdigit() for env in seen)
    keepers = [Path(env.pop("BOA_KEEPER")) for env in seen]
    own = [(NAMESPACE, runs.nodes[node], "1") for node in (2, 1)]
    assert [keeper.parts[-3:] for keeper in keepers] == own
    ours = [{k: v for k, v in env.items() if k not in os.environ} for env in seen]
    ray_and_cluster = ("RAY_", "AUTOSCALER_", "PYTHONPATH")
    ours = [{k: v for k, v in env.items() if not k.startswith(ray_and_cluster)} for env in ours]
    common = {
        "MINE": "1",
        "OMP_NUM_THREADS": "1",
        "BOA_JOB_ID": "1",
        "BOA_CLASS": "test",
        "BOA_WIDTH": "2",
        "BOA_GPU_TYPE": "A100",
        "BOA_ATTEMPT": "1",
        "BOA_EPOCHS": "7",
        "BOA_GRACE_S": "30",
        "BOA_CHECKPOINT_DIR": str(runs.root / "checkpoints" / "1"),
        "BOA_DONE": str(runs.root / "checkpoints" / "1" / ".boa-done-1"),
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.2",
    }
    if "PYTHONUNBUFFERED" not in os.environ:
        common["PYTHONUNBUFFERED"] = "1"
    assert ours == [{**common, "RANK": str(rank)} for rank in (0, 1)]
    assert "RAY_JOB_ID" not in seen[0]


def test_a_checkpoint_of_a_job_that_does_not_report_is_told_while_it_runs(runs: RayRuns) -> None:
    key = runs.start(*shell("touch $BOA_CHECKPOINT_DIR/model; echo up $$; sleep 1000"))

    def told() -> list[RunEvent]:
        runs.poll()
        return [event for event in runs.events.get(key, []) if event.saved]

    until(lambda: bool(told()))
    (event,) = told()
    assert not event.ended
    model = runs.root / "checkpoints" / "1" / "model"
    assert 0 <= event.saved_age_s < time.time() - model.stat().st_mtime + 1
    runs.engine.stop(key, 0.0)
    runs.end(key)


def test_ranks_are_on_the_planned_nodes(runs: RayRuns, rays: Rays) -> None:
    from ray.util.placement_group import placement_group_table

    key = runs.start(*shell(POLITE), slots=((2, 1), (1, 1)), gpu_type="A100")
    runs.until_up(key)
    (group,) = [g for g in placement_group_table().values() if g["state"] == "CREATED"]
    assert group["bundles"] == {0: {"GPU": 1.0, "A100": 1.0}, 1: {"GPU": 1.0, "A100": 1.0}}
    assert group["bundles_to_node_id"] == {0: runs.nodes[2], 1: runs.nodes[1]}
    assert set(runs.engine.timings(key)) == {"place", "prepare", "start"}


def test_reports_of_a_rank_arrive(runs: RayRuns) -> None:
    heard: list[dict[str, Any]] = []

    class Service(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            heard.append({**body, "token": self.headers["Authorization"]})
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            return

    with http.server.HTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/report"
        env = {"BOA_REPORT_URL": url, "BOA_REPORT_TOKEN": "secret"}
        script = "import boa.train; boa.train.report(samples=5, step=2)"
        key = runs.start(sys.executable, "-c", script, env_of_service=env)
        assert runs.end(key).exit_code == 0
        server.shutdown()
    assert heard[-1]["progress"] == 5
    assert heard[-1]["token"] == "Bearer secret"


# How they end


def test_a_node_without_the_package_is_named(
    runs: RayRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere.py").write_text("class Rank:\n    def prepare(self, *_): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    from elsewhere import Rank  # type: ignore[import-not-found]

    (tmp_path / "elsewhere.py").unlink()
    monkeypatch.setattr("boa.engines.ray.cluster.Rank", Rank)
    runs.crash()
    end = runs.end(runs.start("true"))
    assert "No module named 'elsewhere'" in end.reason
    assert end.reason.startswith(f"boa-constrictor cannot be imported on {runs.nodes[0]}")


# What is kept


def test_the_service_is_killed_and_another_goes_on_with_its_runs(runs: RayRuns) -> None:
    launch = runs.launch(*shell(POLITE), slots=((0, 2),))
    service = multiprocessing.get_context("spawn").Process(
        target=serve_until_killed, args=(str(runs.root / "runs"), runs.address, launch)
    )
    service.start()
    began = runs.root / "runs/1/1/1.log"
    until(lambda: began.exists() and "up" in began.read_text())
    service.kill()
    service.join()
    runs.crash()
    assert runs.engine.runs() == [launch.key]
    runs.until_up(launch.key)
    processes = runs.pids(launch.key) + runs.pids(launch.key, rank=1)
    assert all(map(alive, processes))
    runs.engine.start(launch)  # asked again: nothing
    runs.engine.stop(launch.key, 20.0)
    end = runs.end(launch.key)
    assert (end.exit_code, end.stopped) == (0, True)
    assert runs.log(launch.key) == f"up {processes[0]}\nbye\n"
    runs.crash()
    assert runs.end(launch.key).reason == end.reason
    runs.engine.forget(launch.key)
    runs.crash()
    assert not runs.engine.runs()


def serve_until_killed(root: str, address: str, launch: Launch) -> None:
    engine = RayEngine(Path(root), address=address, namespace=NAMESPACE, log_bytes=10_000)
    engine.start(launch)
    while True:
        engine.poll()
        time.sleep(0.02)


def test_runs_that_nobody_knows_are_swept_away(
    runs: RayRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boa.engines.ray.run.SETTLE_S", 0.5)
    key = runs.start(*shell(WITH_CHILD))
    processes = runs.pids(key)
    RayEngine(tmp_path / "new", address=runs.address, namespace=NAMESPACE, log_bytes=1000)
    until(lambda: not any(map(alive, processes)))
    end = runs.end(key)
    assert end.exit_code is None
    assert not end.node_lost


# Last: they take nodes away


def test_a_node_that_dies_takes_the_run_along_and_leaves_no_process(
    runs: RayRuns, rays: Rays
) -> None:
    key = runs.start(*shell(WITH_CHILD), slots=((1, 1), (2, 1)), gpu_type="A100")
    processes = runs.pids(key) + runs.pids(key, rank=1)
    assert len(processes) == 4
    rays.kill_node(runs.nodes[2])
    end = runs.end(key)
    assert end.exit_code is None
    assert end.node_lost
    assert end.reason == f"lost: node {runs.nodes[2]} is gone"
    until(lambda: not any(map(alive, processes)))
    again = runs.start("true", attempt=2, slots=((1, 1),), gpu_type="A100")
    assert runs.end(again).exit_code == 0


def test_nothing_outlives_its_raylet(runs: RayRuns) -> None:
    """Ray's own processes would, as long as something else takes in its orphans."""
    key = runs.start(*shell(WITH_CHILD), slots=((1, 1),), gpu_type="A100")
    processes = runs.pids(key)
    os.kill(raylet_of(runs.nodes[1]), signal.SIGKILL)
    until(lambda: not any(map(alive, processes)))
    assert runs.end(key).node_lost
