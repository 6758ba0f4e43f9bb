"""The Secrets that a run's pods find: our code, the launch, the job's secrets, its package. Pure.

None of it is in the pods themselves, which more people may read: the environment has the token
that the job reports with.
"""

import base64
import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import Any

from boa.engines import launching
from boa.engines.kubernetes import in_pod
from boa.engines.kubernetes.names import CODE, Part
from boa.engines.processes import run_files
from boa.model.runs import Launch, NodeSlots

PIECE = 960 * 1024
"""Bytes of a package in one Secret, which may have 1 MiB."""
MOST_PIECES = 8
_MODULES = (
    "engines/environments.py",
    "engines/kubernetes/frames.py",
    "engines/kubernetes/in_pod.py",
    "engines/processes/masking.py",
    "engines/processes/run_files.py",
    "engines/processes/run_marks.py",
    "engines/processes/run_supervisor.py",
    "engines/processes/worker_user.py",
    "packing/archive.py",
    "packing/unpack.py",
    "plain_file.py",
)
"""Files of the package that a pod needs, and that need no others."""
_PACKAGES = ("", "engines/", "engines/kubernetes/", "engines/processes/", "packing/")
_MAIN = """\
import sys
if sys.version_info < (3, 10):
    said = "its image has Python %d.%d; the supervisor of jobs needs 3.10 or newer"
    with open("/dev/termination-log", "w") as file:
        file.write(said % sys.version_info[:2])
    sys.exit(1)
from boa.engines.kubernetes.in_pod import main
main()
"""


class TooLarge(Exception):
    """A package that no Secrets can carry: says so."""


@cache
def code() -> bytes:
    """A zip that Python runs: process 1 of a pod."""
    packed, ours = io.BytesIO(), files("boa")
    texts = {"__main__.py": _MAIN, **{f"boa/{folder}__init__.py": "" for folder in _PACKAGES}}
    texts |= {f"boa/{name}": ours.joinpath(name).read_text("utf-8") for name in _MODULES}
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in texts.items():
            file.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def parts_of(launch: Launch, names: Sequence[str]) -> list[Part]:
    """Pods of a run, one to a node, and the ranks in each: they follow each other on a node."""
    widths = [len(slot.gpus) for slot in launch.slots]
    firsts = [0, *accumulate(widths)]
    ranks = [
        tuple(range(first, first + width)) for first, width in zip(firsts, widths, strict=False)
    ]
    if launch.spec.launcher == "single":
        ranks = [(0,), *(() for _ in widths[1:])]
    elif launch.spec.launcher == "torchrun":
        ranks = [one[:1] for one in ranks]
    return [
        Part(name=name, node=slot.address, label=str(slot.node), gpus=width, ranks=one)
        for name, slot, width, one in zip(names, launch.slots, widths, ranks, strict=True)
    ]


def documents(
    launch: Launch,
    parts: Sequence[Part],
    *,
    tag: str,
    port: int,
    workdir: str,
    log_bytes: int,
    image: str,
    kept: bool,
) -> list[dict[str, Any]]:
    """The launch of each pod, as `in_pod` reads it. `kept`: what is saved outlives the pods."""
    gang, spec = len(parts) > 1, launch.spec
    slots = [
        NodeSlots(number, tuple(range(part.gpus)), part.node) for number, part in enumerate(parts)
    ]
    plans = launching.plans(
        replace(launch, slots=tuple(slots)),
        port=port,
        gpus=False,  # a container sees its own, and no others
        master=in_pod.MASTER if gang else launching.HERE,
        devices=[[str(gpu) for gpu in slot.gpus] for slot in slots],
        environment=dict.fromkeys(_DEFAULTS, ""),  # which the image may have: known in the pod
    )
    several = spec.launcher == "workers" and launch.width > 1
    common = {
        "workdir": workdir,
        "own": not spec.workdir,
        "grace_s": spec.grace_s,
        "log_bytes": log_bytes,
        "needs": sorted(launch.secrets),
        "environment": spec.environment,
        "digest": spec.package,
        "image": image,
        "checkpoint_dir": launch.checkpoint_dir,
        "defaults": _DEFAULTS if several else {},
        "gang": gang,
        "tag": tag,
        "token": in_pod.TOKEN + tag,
        "port": port,
        "seen_s": in_pod.SEEN_S,
        "pieces": 0,
        "notice": "" if kept or launch.key.attempt == 1 else _NOT_KEPT % launch.checkpoint_dir,
    }
    return [
        {
            **common,
            "plans": [dict(plan) for plan in plans if plan["rank"] in part.ranks],
            "first": number == 0,
            "node": part.node,
        }
        for number, part in enumerate(parts)
    ]


_NOT_KEPT = (
    "[boa] nothing is mounted at %s (kubernetes.pod_template): what earlier runs saved there went "
    "with their pods\n"
)
_DEFAULTS = {"OMP_NUM_THREADS": "1"}
"""As torchrun has it, unless the image or the job says otherwise: ranks share the cores."""


def check_size(package_bytes: int) -> None:
    """Raises TooLarge."""
    if package_bytes > PIECE * MOST_PIECES:
        raise TooLarge(
            f"its package has {package_bytes / 1e6:.1f} MB, and on Kubernetes at most "
            f"{PIECE * MOST_PIECES / 1e6:.1f} MB go along with a job"
        )


def pieces(package: bytes) -> list[bytes]:
    """A package, cut for Secrets. Raises TooLarge."""
    check_size(len(package))
    return [package[at : at + PIECE] for at in range(0, len(package), PIECE)]


def contents(
    names: Sequence[str],
    documents: Sequence[Mapping[str, Any]],
    secrets: Mapping[str, str],
    package: Sequence[bytes],
) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Secrets by name, and what is in each: the first has all but the package."""
    common, own = parted([{**document, "pieces": len(package)} for document in documents])
    launches = {f"{in_pod.LAUNCH}{number}": run_files.packed(one) for number, one in enumerate(own)}
    given = {in_pod.SECRETS: run_files.packed(dict(secrets))} if secrets else {}
    yield names[0], {CODE: code(), in_pod.COMMON: run_files.packed(common), **launches, **given}
    for number, piece in enumerate(package):
        yield names[number + 1], {f"{in_pod.PACKAGE}{number}": piece}


def parted(documents: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The part that all of them share, and the rest of each: see `in_pod.joined`. A Secret has no
    room for the same command and environment once for every rank."""
    first, plans = documents[0], [plan for document in documents for plan in document["plans"]]
    common = {
        name: one
        for name, one in first.items()
        if name != "plans" and all(document[name] == one for document in documents)
    }
    env = dict(set.intersection(*(set(plan["env"].items()) for plan in plans)))
    argv = plans[0]["argv"] if all(plan["argv"] == plans[0]["argv"] for plan in plans) else None
    own = [
        {
            **{name: one for name, one in document.items() if name not in common},
            "plans": [
                {
                    **{name: one for name, one in plan.items() if argv is None or name != "argv"},
                    "env": {name: one for name, one in plan["env"].items() if name not in env},
                }
                for plan in document["plans"]
            ],
        }
        for document in documents
    ]
    return {**common, "env": env, "argv": argv or []}, own


def secret(name: str, labels: Mapping[str, str], data: Mapping[str, bytes]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": dict(labels)},
        "immutable": True,
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }
