"""Pods as they are sent to a cluster: the user's template in, what is ours on top."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.engines.kubernetes import in_pod, luggage, manifest
from boa.engines.kubernetes.beginning import beginning
from boa.engines.kubernetes.marker import Marker, told_by
from boa.engines.kubernetes.names import Part, pod_name, secret_names, value
from boa.engines.kubernetes.submitting import checks
from boa.engines.kubernetes.template import read
from boa.engines.processes import run_files
from boa.errors import InputError
from boa.model.job import JobSpec
from boa.model.kubernetes_names import GPUS
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.runs import Launch, NodeSlots, RunKey

KEY = RunKey("7", 2)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8)
VOLUMES = st.lists(NAMES, unique=True, max_size=3)


def made(template: dict[str, Any], *, gpus: int = 2, gang: bool = False) -> dict[str, Any]:
    run = manifest.RunPods(
        key=KEY, owner="boa", image="img", grace_s=30.0, about={}, gang=gang, luggage=["s"]
    )
    part = Part(name="boa-7-2-0", node="n1", label="0", gpus=gpus, ranks=(0, 1))
    return manifest.pod(run, part, 0, read(template))


def launch(*widths: int, **spec: Any) -> Launch:
    slots = tuple(NodeSlots(i, tuple(range(n)), f"n{i}") for i, n in enumerate(widths))
    return Launch(
        key=KEY,
        spec=JobSpec(job_class="c", run=("python", "train.py"), **spec),
        gpu_type="T4",
        slots=slots,
        checkpoint_dir="/ckpt/7",
        env={"BOA_REPORT_TOKEN": "token-of-the-run"},
        secrets={"KEY": "hunter2"},
    )


@st.composite
def templates(draw: st.DrawFn) -> dict[str, Any]:
    volumes = [{"name": name, "emptyDir": {}} for name in draw(VOLUMES)]
    mounts = [{"name": one["name"], "mountPath": f"/data/{one['name']}"} for one in volumes]
    env = [{"name": name.upper(), "value": "1"} for name in draw(VOLUMES)]
    container = {
        "name": "job",
        "image": draw(NAMES),
        "env": env,
        "volumeMounts": mounts,
        "resources": {"limits": {"cpu": "4"}, "requests": {"memory": "1Gi"}},
    }
    others = [{"name": f"x-{name}", "image": "i"} for name in draw(VOLUMES)]
    spec = {
        "volumes": volumes,
        "containers": draw(st.permutations([container, *others])),
        "tolerations": [{"key": key, "operator": "Exists"} for key in draw(VOLUMES)],
        "runtimeClassName": draw(NAMES),
        "imagePullSecrets": [{"name": name} for name in draw(VOLUMES)],
    }
    return {"metadata": {"labels": {"team": draw(NAMES)}}, "spec": spec}


@given(template=templates(), gang=st.booleans())
def test_all_that_a_template_says_is_in_the_pod_and_so_is_all_of_ours(
    template: dict[str, Any], gang: bool
) -> None:
    pod = made(template, gang=gang)
    spec, given_spec = pod["spec"], template["spec"]
    job, *others = spec["containers"]
    own = next(one for one in given_spec["containers"] if one["name"] == "job")
    assert others == [one for one in given_spec["containers"] if one["name"] != "job"]
    for name in ("volumes", "tolerations"):
        assert [one for one in given_spec[name] if one not in spec[name]] == []
    assert [one for one in own["volumeMounts"] if one not in job["volumeMounts"]] == []
    assert (spec["runtimeClassName"], job["env"]) == (given_spec["runtimeClassName"], own["env"])
    assert pod["metadata"]["labels"]["team"] == template["metadata"]["labels"]["team"]
    limits = {"cpu": "4", GPUS: "2"}
    assert job["resources"] == {"limits": limits, "requests": {"memory": "1Gi", GPUS: "2"}}
    named = {one["name"] for one in spec["volumes"]}
    assert {one["name"] for one in job["volumeMounts"]} <= named
    assert len({one["mountPath"] for one in job["volumeMounts"]}) == len(job["volumeMounts"])
    assert ("boa-gate" in named) == gang
    assert (spec["restartPolicy"], spec["automountServiceAccountToken"]) == ("Never", False)
    assert "nodeName" not in spec


def test_a_pod_is_pinned_to_its_node_beside_what_else_is_asked() -> None:
    here = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    bare = made({})["spec"]["affinity"]["nodeAffinity"]
    assert bare == {required: {"nodeSelectorTerms": [{"matchFields": [here]}]}}
    terms = [{"matchExpressions": [{"key": zone, "operator": "Exists"}]} for zone in ("a", "b")]
    affinity = {"nodeAffinity": {required: {"nodeSelectorTerms": terms}}, "podAffinity": {}}
    merged = made({"spec": {"affinity": affinity}})["spec"]["affinity"]
    assert merged["podAffinity"] == {}
    found = merged["nodeAffinity"][required]["nodeSelectorTerms"]
    assert found == [{**term, "matchFields": [here]} for term in terms], "any of them is enough"


def test_shared_memory_is_the_nodes_unless_the_template_has_its_own() -> None:
    paths = [one["mountPath"] for one in made({})["spec"]["containers"][0]["volumeMounts"]]
    assert paths.count("/dev/shm") == 1
    job = {"name": "job", "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]}
    own = made({"spec": {"volumes": [{"name": "shm", "emptyDir": {}}], "containers": [job]}})
    mounts = own["spec"]["containers"][0]["volumeMounts"]
    assert [one["name"] for one in mounts if one["mountPath"] == "/dev/shm"] == ["shm"]


@pytest.mark.parametrize(
    ("template", "field"),
    [
        ({"kind": "Deployment"}, "kind"),
        ({"spec": {"nodeName": "n"}}, "spec.nodeName"),
        ({"spec": {"automountServiceAccountToken": True}}, "automountServiceAccountToken"),
        ({"spec": {"terminationGracePeriodSeconds": 5}}, "spec.terminationGracePeriodSeconds"),
        (
            {"spec": {"containers": [{"name": "job", "command": ["x"]}]}},
            r"containers\[job\]\.command",
        ),
        ({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}, "spec.containers"),
        ({"spec": {"containers": "none"}}, "spec.containers"),
        ({"spec": {"tolerations": {"key": "a"}}}, "spec.tolerations"),
        ({"spec": {"affinity": ["a"]}}, "spec.affinity"),
        ({"spec": {"containers": [{"name": "job", "env": {"A": "1"}}]}}, r"\[job\]\.env"),
        ({"spec": {"volumes": [{"name": "boa-run"}]}}, "spec.volumes"),
        (
            {"spec": {"containers": [{"name": "job", "resources": {"limits": {GPUS: "1"}}}]}},
            r"containers\[job\]\.resources\.limits\.nvidia\.com/gpu",
        ),
        (
            {
                "spec": {
                    "containers": [
                        {"name": "job", "volumeMounts": [{"name": "a", "mountPath": "/boa/run"}]}
                    ]
                }
            },
            r"containers\[job\]\.volumeMounts",
        ),
        ({"metadata": {"labels": {"boa-constrictor.dev/owner": "me"}}}, "metadata.labels"),
    ],
)
def test_what_a_template_may_not_say_is_named(template: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError, match=field):
        read(template)


def test_what_is_saved_outlives_the_pod_only_on_a_volume() -> None:
    mounts = [{"name": "nfs", "mountPath": "/ckpt/"}, {"name": "tmp", "mountPath": "/tmp"}]
    volumes = [{"name": "nfs", "persistentVolumeClaim": {}}, {"name": "tmp", "emptyDir": {}}]
    job = {"name": "job", "volumeMounts": mounts}
    template = read({"spec": {"volumes": volumes, "containers": [job]}})
    assert [template.keeps(path) for path in ("/ckpt/7", "/ckpt", "/ckpt2/7", "/tmp/7")] == [
        True,
        True,
        False,
        False,
    ]


# A launch


def begun(launch: Launch, **settings: Any) -> Any:
    template = read(settings.pop("pod_template", {}))
    told = KubernetesSettings(**{"image": "img", **settings})
    return beginning(launch, told, template, workdir="/work", log_bytes=1000)


def test_secrets_and_tokens_are_in_no_pod() -> None:
    found = begun(launch(2, 1))
    assert len(found.pods) == 2
    text = json.dumps(found.pods)
    assert "hunter2" not in text
    assert "token-of-the-run" not in text


def test_every_node_has_its_share_of_ranks_and_no_rank_is_twice() -> None:
    found = begun(launch(2, 1, 4))
    ranks = [part.ranks for part in found.marker.parts()]
    assert ranks == [(0, 1), (2,), (3, 4, 5, 6)]
    gpus = [
        pod["spec"]["containers"][0]["resources"]["limits"][GPUS] for pod in found.pods.values()
    ]
    assert gpus == ["2", "1", "4"]
    assert not found.marker.launched, "the gate opens first"
    assert begun(launch(4)).marker.launched


@pytest.mark.parametrize(
    ("launcher", "ranks"), [("single", [(0,), ()]), ("torchrun", [(0,), (2,)])]
)
def test_launchers_have_one_process_for_all_or_for_each_node(
    launcher: str, ranks: list[tuple[int, ...]]
) -> None:
    assert [part.ranks for part in begun(launch(2, 2, launcher=launcher)).marker.parts()] == ranks


def test_a_run_is_found_again_by_what_its_pods_say() -> None:
    found = begun(launch(2, 1))
    for pod in found.pods.values():
        about = json.loads(pod["metadata"]["annotations"]["boa-constrictor.dev/launch"])
        told = told_by(about)
        assert told is not None
        key, marker = told
        assert key == KEY
        assert (marker.tag, marker.parts()) == (found.marker.tag, found.marker.parts())
    assert told_by({}) is None
    assert told_by({"job": "1", "attempt": "x"}) is None


@pytest.mark.parametrize(
    ("own", "template", "default", "expected"),
    [
        ("mine:1", "theirs:1", "all:1", "mine:1"),
        ("docker://mine:1", "", "", "mine:1"),
        ("", "theirs:1", "all:1", "theirs:1"),
        ("", "", "all:1", "all:1"),
    ],
)
def test_the_nearest_image_holds(own: str, template: str, default: str, expected: str) -> None:
    given_image = {"spec": {"containers": [{"name": "job", "image": template}]}}
    found = begun(launch(1, image=own), image=default, pod_template=given_image if template else {})
    assert found.marker.image == expected


@pytest.mark.parametrize("image", ["", "/images/a.sif", "a.sif"])
def test_an_image_that_no_pod_can_run_is_refused(image: str) -> None:
    with pytest.raises(InputError, match="image"):
        begun(launch(1, image=image), image="")


def test_a_package_is_cut_for_secrets_and_a_large_one_refused() -> None:
    assert luggage.pieces(b"") == []
    whole = bytes(luggage.PIECE) + b"rest"
    assert b"".join(luggage.pieces(whole)) == whole
    with pytest.raises(luggage.TooLarge, match=r"at most 7\.9 MB"):
        luggage.pieces(bytes(luggage.PIECE * luggage.MOST_PIECES + 1))


def test_what_no_pod_could_run_is_refused_when_it_is_submitted() -> None:
    check = checks(KubernetesSettings(image="img"))
    check(JobSpec(job_class="c", run=("x",)), 1000)
    with pytest.raises(InputError, match="package"):
        check(JobSpec(job_class="c", run=("x",)), 10**8)
    with pytest.raises(InputError, match="image"):
        check(JobSpec(job_class="c", run=("x",), image="a.sif"), 0)
    with pytest.raises(InputError, match="image"):
        checks(KubernetesSettings())(JobSpec(job_class="c", run=("x",)), 0)


def test_each_pod_reads_its_own_launch_and_the_package_is_counted() -> None:
    plan = {"argv": ["a"], "env": {"A": "1"}}
    documents: list[dict[str, Any]] = [{"number": n, "plans": [plan]} for n in range(2)]
    found = dict(luggage.contents(["a", "b"], documents, {"KEY": "v"}, [b"piece"]))
    own = in_pod.joined(found["a"]["common"], found["a"]["launch1"])
    assert own.items() >= {"number": 1, "pieces": 1, "plans": [plan]}.items()
    assert run_files.unpacked(found["a"]["secrets"]) == {"KEY": "v"}
    assert found["b"] == {"package0": b"piece"}


# Names


@given(job=st.text("abcXYZ019-", min_size=1, max_size=80), node=st.integers(0, 999))
def test_names_are_ones_that_pods_may_have(job: str, node: int) -> None:
    name = pod_name("boa", RunKey(job, 1), str(node))
    assert len(name) <= 63
    assert name == name.lower()
    assert name[0].isalnum()
    assert name[-1].isalnum()
    assert len(value(job)) <= 63
    assert len({name, *secret_names("boa", RunKey(job, 1), "tag", 2)}) == 4


def test_runs_that_differ_have_names_that_differ() -> None:
    jobs = ["a" * 70, "a" * 70 + "b", "A" * 70, "1", "1-1", "11"]
    names = {pod_name("boa", RunKey(job, attempt), "0") for job in jobs for attempt in (1, 2)}
    assert len(names) == 2 * len(jobs)


@pytest.mark.parametrize(
    ("asked", "own", "seconds"), [(30.0, 30.0, 33), (20.0, 30.0, 20), (0.0, 30.0, 1), (0.2, 0.2, 4)]
)
def test_a_kubelet_kills_after_the_grace_and_never_by_force(
    asked: float, own: float, seconds: int
) -> None:
    assert manifest.grace(asked, own) == seconds


def test_a_marker_of_nothing_was_never_begun() -> None:
    assert not Marker().launched
    assert Marker().parts() == []
