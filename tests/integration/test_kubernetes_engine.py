"""Real processes under the Kubernetes engine: a real control plane, and nodes that run pods'
commands as processes of this machine."""

import json
import multiprocessing
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa.engines.kubernetes import KubernetesEngine
from boa.engines.kubernetes.names import FINALIZER
from boa.kubelink import KubeTrouble, connect, pods, secrets
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.runs import Launch
from boa.packing.pack import pack
from cluster_contract import (  # noqa: F401
    ON_BOTH,
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
from kube.cluster import Cluster
from kube_runs import KubeRuns
from local_runs import until

pytestmark = pytest.mark.kubernetes


@pytest.fixture(scope="module")
def nodes(kube_cluster: Cluster) -> Iterator[list[str]]:
    """Node 0 has two GPUs, nodes 1 and 2 have one each."""
    with kube_cluster.clean_after():
        names = kube_cluster.add_nodes(1, gpus=2) + kube_cluster.add_nodes(2, gpus=1)
        yield names


@pytest.fixture
def runs(kube_cluster: Cluster, nodes: list[str], tmp_path: Path) -> Iterator[KubeRuns]:
    runs = KubeRuns(tmp_path, kube_cluster, list(nodes))
    yield runs
    runs.close()


# What they see


def test_ranks_see_the_variables_promised_and_none_of_the_services(runs: KubeRuns) -> None:
    key = runs.start("env", "-0", **ON_BOTH, env={"MINE": "1"}, epochs=7)
    assert runs.end(key).exit_code == 0
    texts = [runs.log(key, rank) for rank in (0, 1)]
    seen = [dict(e.split("=", 1) for e in text.rstrip("\0").split("\0")) for text in texts]
    assert len({env.pop("MASTER_PORT") for env in seen}) == 1
    (first,) = {env.pop("MASTER_ADDR") for env in seen}
    assert first == runs.pod(key, node=2)["status"]["podIP"]
    of_node = ("KUBERNETES_", "LC_", "PATH", "HOME", "PWD", "HOSTNAME")
    ours = [{k: v for k, v in env.items() if not k.startswith(of_node)} for env in seen]
    common = {
        "MINE": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
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
    }
    assert ours == [{**common, "RANK": str(rank)} for rank in (0, 1)]


def test_pods_are_on_the_planned_nodes_and_say_whose_they_are(runs: KubeRuns) -> None:
    value = "hunter2-and-a-lot-more"
    launch = runs.launch(
        *shell(POLITE), **ON_BOTH, env_of_service={"BOA_REPORT_TOKEN": "token-of-this-run"}
    )
    runs.engine.start(replace(launch, secrets={"KEY": value}))
    runs.until_up(launch.key)
    for node in (1, 2):
        pod = runs.pod(launch.key, node)
        assert pod["spec"]["nodeName"] == runs.nodes[node]
        limits = pod["spec"]["containers"][0]["resources"]["limits"]
        assert limits == {"nvidia.com/gpu": "1"}
        labels = {k.rpartition("/")[2]: v for k, v in pod["metadata"]["labels"].items()}
        assert labels == {"owner": "boa-test", "job": "1", "attempt": "1", "node": str(node)}
        assert pod["metadata"]["finalizers"] == [FINALIZER]
        assert value not in json.dumps(pod)
        assert "token-of-this-run" not in json.dumps(pod)
    assert set(runs.engine.timings(launch.key)) == {"place", "prepare", "start"}
    runs.engine.stop(launch.key, 5.0)
    assert runs.end(launch.key).stopped
    runs.until_gone(launch.key)
    held = runs.kube.list(secrets(runs.namespace))
    assert not [one for one in held if one["metadata"]["name"].startswith("boa-test")]


def test_one_process_may_have_the_gpus_of_several_nodes(runs: KubeRuns) -> None:
    key = runs.start(*shell("echo $BOA_WIDTH"), **ON_BOTH, launcher="single")
    end = runs.end(key)
    assert (end.exit_code, end.stopped, end.reason) == (0, False, "")
    assert runs.log(key) == "2\n"
    assert len(runs.engine.logs("1")) == 1


def test_a_package_goes_along_with_its_run(runs: KubeRuns, tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "hello.txt").write_text("hello from the package")
    (code / "noise.bin").write_bytes(os.urandom(1_500_000))  # more than one Secret can have
    packed = pack(code, most=10**8)
    (tmp_path / "package.tar.gz").write_bytes(packed.data)
    launch = runs.launch("cat", "hello.txt", package=str(tmp_path / "package.tar.gz"))
    runs.engine.start(replace(launch, spec=replace(launch.spec, package=packed.digest)))
    assert runs.end(launch.key).exit_code == 0
    assert runs.log(launch.key) == "hello from the package"


def test_a_template_is_merged_in_and_what_runs_beside_the_job_ends_with_it(
    runs: KubeRuns, tmp_path: Path
) -> None:
    shared = {"name": "shared", "hostPath": {"path": str(tmp_path), "type": "Directory"}}
    job = {
        "name": "job",
        "env": [{"name": "FROM_TEMPLATE", "value": "yes"}],
        "volumeMounts": [{"name": "shared", "mountPath": "/checkpoints"}],
    }
    beside = {"name": "beside", "image": "boa.test/pause:1"}
    runs.crash(pod_template={"spec": {"volumes": [shared], "containers": [job, beside]}})
    launch = runs.launch(*shell("echo $FROM_TEMPLATE >> $BOA_CHECKPOINT_DIR/said"))
    runs.engine.start(replace(launch, checkpoint_dir="/checkpoints/1"))
    assert runs.end(launch.key).exit_code == 0
    assert (tmp_path / "1" / "said").read_text() == "yes\n"


def test_what_is_saved_where_nodes_do_not_share_it_is_a_clear_failure(runs: KubeRuns) -> None:
    job = {"name": "job", "volumeMounts": [{"name": "own", "mountPath": "/checkpoints"}]}
    volumes = [{"name": "own", "emptyDir": {}}]
    runs.crash(pod_template={"spec": {"volumes": volumes, "containers": [job]}})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("boa.engines.kubernetes.in_pod.SEEN_S", 0.2)
        launch = runs.launch("true", **ON_BOTH)
        runs.engine.start(replace(launch, checkpoint_dir="/checkpoints/1"))
    end = runs.end(launch.key)
    assert (end.exit_code, end.node_lost) == (None, False)
    assert f"node {runs.nodes[1]} does not see what another writes to /checkpoints/1" in end.reason


# What they cannot have


def test_a_gang_that_is_not_placed_in_its_time_says_why(runs: KubeRuns) -> None:
    first = runs.start(*shell(POLITE), slots=((1, 1),))
    runs.until_up(first)
    late = runs.start("true", job="2", **ON_BOTH)
    runs.out_of_time(late, lambda member: bool(member.pod and member.pod.why))
    end = runs.end(late)
    assert (end.exit_code, end.unready) == (None, True)
    assert end.reason.startswith("2 A100 GPUs could not be had within 0 s")
    assert "Insufficient nvidia.com/gpu" in end.reason
    runs.engine.forget(end.key)
    assert runs.end(runs.start("true", job="3", slots=((2, 1),))).exit_code == 0


def test_an_image_that_cannot_be_pulled_is_named(runs: KubeRuns) -> None:
    key = runs.start("true", image="missing.test/nowhere:7")
    runs.out_of_time(key, lambda member: member.broken_since is not None)
    end = runs.end(key)
    assert (end.exit_code, end.node_lost) == (None, False)
    assert end.reason.startswith("image missing.test/nowhere:7 cannot be had on node ")


def test_a_pod_that_no_quota_lets_in_waits_for_room_and_says_so(runs: KubeRuns) -> None:
    quotas = f"/api/v1/namespaces/{runs.namespace}/resourcequotas"
    runs.kube.create(quotas, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}})
    until(lambda: bool(runs.kube.get(f"{quotas}/few").get("status", {}).get("hard")))
    late = runs.start("true", **ON_BOTH)
    runs.out_of_time(late, lambda member: bool(member.refused))
    end = runs.end(late)
    assert (end.exit_code, end.unready) == (None, True)
    assert "exceeded quota: few" in end.reason
    key = runs.start(*shell("echo up"), job="2", **ON_BOTH)
    runs.poll()
    runs.kube.delete(f"{quotas}/few")
    assert runs.end(key).exit_code == 0


def test_a_template_that_makes_no_pod_says_what_the_api_server_says(runs: KubeRuns) -> None:
    runs.crash(pod_template={"spec": {"priorityClassName": "", "dnsPolicy": "Sometimes"}})
    end = runs.end(runs.start("true"))
    assert (end.exit_code, end.node_lost) == (None, False)
    assert "Sometimes" in end.reason


# What happens to them


def test_a_pod_that_somebody_deletes_is_stopped_and_so_is_its_gang(runs: KubeRuns) -> None:
    key = runs.start(*shell(POLITE), **ON_BOTH)
    for rank in (0, 1):
        runs.until_printed(key, "up ", rank)
    runs.kube.delete(pods(runs.namespace, runs.pod(key, node=1)["metadata"]["name"]))
    end = runs.end(key)
    assert (end.exit_code, end.stopped) == (0, True)
    assert end.reason == "stopped: its pod was deleted by somebody else"
    assert [runs.log(key, rank).endswith("bye\n") for rank in (0, 1)] == [True, True]


def test_a_pod_that_somebody_takes_away_by_force_is_lost(runs: KubeRuns) -> None:
    key = runs.start(*shell(POLITE))
    runs.until_up(key)
    name = runs.pod(key)["metadata"]["name"]
    runs.kube.patch(pods(runs.namespace, name), {"metadata": {"finalizers": None}})
    runs.kube.delete(pods(runs.namespace, name), grace_s=0)
    end = runs.end(key)
    assert (end.exit_code, end.run_lost) == (None, True)
    assert "deleted by somebody else" in end.reason


def test_the_api_server_is_away_and_nothing_is_lost(runs: KubeRuns) -> None:
    key = runs.start(*shell(POLITE))
    runs.until_printed(key, "up ")
    with runs.cluster.without_api():
        with pytest.raises(KubeTrouble):
            until(lambda: runs.told(key, ended=True) is not None)
        runs.engine.stop(key, 120.0)  # to be carried out when there is somebody to ask
    until(runs.poll_quietly)
    end = runs.end(key)
    assert (end.exit_code, end.stopped, end.reason) == (0, True, "stopped when asked")
    assert runs.log(key).endswith("bye\n")


def test_the_service_is_killed_and_another_goes_on_with_its_runs(runs: KubeRuns) -> None:
    launch = runs.launch(*shell(POLITE), slots=((0, 2),))
    service = multiprocessing.get_context("spawn").Process(
        target=serve_until_killed,
        args=(runs.root / "runs", str(runs.cluster.kubeconfig), runs.namespace, runs.settings),
        kwargs={"launch": launch},
    )
    service.start()
    began = runs.root / "runs/1/1/1.log"
    until(lambda: began.exists() and "up" in began.read_text())
    service.kill()
    service.join()
    runs.crash()
    assert runs.engine.runs() == [launch.key]
    runs.until_up(launch.key)
    assert runs.living(launch.key)
    runs.engine.start(launch)  # asked again: nothing
    runs.engine.stop(launch.key, 20.0)
    end = runs.end(launch.key)
    assert (end.exit_code, end.stopped) == (0, True)
    assert runs.log(launch.key).splitlines()[1:] == ["bye"]


def serve_until_killed(
    root: Path, kubeconfig: str, namespace: str, settings: KubernetesSettings, launch: Launch
) -> None:
    kube = connect(kubeconfig, namespace=namespace)
    engine = KubernetesEngine(root, kube=kube, settings=settings, log_bytes=10_000)
    engine.start(launch)
    while True:
        engine.poll()
        time.sleep(0.02)


def test_a_folder_that_is_lost_costs_no_run(runs: KubeRuns) -> None:
    key = runs.start(*shell(POLITE), **ON_BOTH)
    runs.until_printed(key, "up ")
    runs.until_up(key)
    runs.engine.close()
    runs.engine = runs.new_engine("new")
    runs.events.clear()
    assert list(runs.engine.runs()) == [key]
    runs.engine.stop(key, 120.0)
    end = runs.end(key)
    assert (end.exit_code, end.stopped) == (0, True)
    assert runs.log(key).endswith("bye\n")


def test_pods_of_no_run_are_swept_away_and_those_of_others_are_not(runs: KubeRuns) -> None:
    def made(name: str, labels: dict[str, str]) -> dict[str, Any]:
        spec = {"containers": [{"name": "x", "image": "boa.test/pause:1"}]}
        return {"metadata": {"name": name, "labels": labels}, "spec": spec}

    domain = "boa-constrictor.dev"
    mine = {f"{domain}/owner": "boa-test", f"{domain}/job": "9", f"{domain}/attempt": "1"}
    runs.kube.create(pods(runs.namespace), made("stray", mine))
    runs.kube.create(pods(runs.namespace), made("other", {**mine, f"{domain}/owner": "boa"}))
    runs.kube.create(pods(runs.namespace), made("holder", {f"{domain}/owner": "boa-test"}))
    runs.crash()
    until(lambda: {pod["metadata"]["name"] for pod in runs.pods()} == {"other", "holder"})


# Last: they take nodes away


def test_a_node_that_dies_takes_the_run_along(runs: KubeRuns, kube_cluster: Cluster) -> None:
    runs.nodes += kube_cluster.add_nodes(1, gpus=1)
    key = runs.start(*shell(POLITE), slots=((3, 1), (0, 1)))
    for rank in (0, 1):
        runs.until_printed(key, "up ", rank)
    kube_cluster.kill_node(runs.nodes[3])
    end = runs.end(key)
    assert (end.exit_code, end.node_lost) == (None, True)
    assert end.reason == f"lost: node {runs.nodes[3]} does not answer (NotReady)"
    assert [pod["spec"]["nodeName"] for pod in runs.pods()] == [runs.nodes[0]], "by force"
    again = runs.start("true", attempt=2, slots=((0, 1),))
    assert runs.end(again).exit_code == 0


def test_a_node_that_is_taken_away_takes_the_run_along(
    runs: KubeRuns, kube_cluster: Cluster
) -> None:
    runs.nodes += kube_cluster.add_nodes(1, gpus=1)
    key = runs.start(*shell(POLITE), slots=((3, 1),))
    runs.until_printed(key, "up ")
    kube_cluster.remove_node(runs.nodes[3])
    end = runs.end(key)
    assert (end.exit_code, end.node_lost) == (None, True)
    assert end.reason == f"lost: node {runs.nodes[3]} is gone"
    assert not runs.pods()
