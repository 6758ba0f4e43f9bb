"""Kubernetes from Debian's source package, for this machine's test cluster: built once.

    python tests/kube/build.py [--or-skip]

Debian's `kubernetes` 1.20.2 is the only one of its releases whose source is more than kubectl. It
is compiled with Debian's Go, which takes some ten minutes of a processor, and kept in
~/.cache/boa-constrictor/kubernetes (or $XDG_CACHE_HOME, or $BOA_KUBERNETES) with etcd, the
image that pods run and the program that renders the Helm chart. Begun again after it was killed,
it goes on; run again, it does nothing. It needs Python alone.
--or-skip: what cannot be built here is only said, but in CI.
"""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kube import apt, image, places
from kube.renderer import GO, renderer

VERSION = "1.20.2"
PACKAGED = {"etcd": "etcd-server", "kubectl": "kubernetes-client"}
"""Binaries that Debian has as they are, and the packages that have them."""
COMPILED = tuple(name for name in places.BINARIES if name not in PACKAGED)
TO_RUN = ("containerd", "runc", "containernetworking-plugins", "iproute2", "procps")
TO_BUILD = (
    "ca-certificates",
    "dpkg-dev",
    "gcc",
    "golang-1.19-go",
    "golang-github-modern-go-reflect2-dev",
    "libc6-dev",
    "xz-utils",
)
_REFLECT2 = Path("/usr/share/gocode/src/github.com/modern-go/reflect2")
_TELL_S = 20.0
_BEGAN = time.monotonic()


class BuildFailed(Exception):
    """With what the tool said."""


def say(text: str) -> None:
    print(f"kubernetes: [{time.monotonic() - _BEGAN:4.0f} s] {text}", flush=True)


def build(cache: Path) -> None:
    """All that a cluster needs, in `cache`; what is there is not made again."""
    cache.mkdir(parents=True, exist_ok=True)
    with _alone(cache):
        if not _has_binaries(cache):
            say(
                f"building Kubernetes {VERSION} into {cache} (once, some 10 minutes of a processor)"
            )
            say("packages to build with")
            apt.install(*TO_BUILD)
            with _work(cache) as work:
                _unpack(work)
                _compile(work, _source(work))
                _put(work / "out", cache)
        apt.install(*TO_RUN)
        if not (cache / "image.tar").exists():
            say("the image of pods: Debian's Python")
            image.base_images(cache)
        renderer()
    say(f"Kubernetes {VERSION} is in {cache}")


def _has_binaries(cache: Path) -> bool:
    version = cache / "VERSION"
    if not version.exists() or version.read_text().strip() != VERSION:
        return False
    return all(os.access(cache / name, os.X_OK) for name in places.BINARIES)


@contextlib.contextmanager
def _alone(cache: Path) -> Iterator[None]:
    with (cache / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("somebody else builds it: waiting")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _work(cache: Path) -> Iterator[Path]:
    """Where it is built: it stays until all is done, so that a killed build goes on from there.

    $BOA_KUBERNETES_WORK is somebody's own, and stays.
    """
    if told := os.environ.get("BOA_KUBERNETES_WORK"):
        yield Path(told)
        return
    work = cache / "work"
    work.mkdir(exist_ok=True)
    yield work
    shutil.rmtree(work, ignore_errors=True)


def _unpack(work: Path) -> None:
    """Taken out of their packages, which need not be installed: another's kubectl may be there."""
    root, out = work / "packaged", work / "out"
    out.mkdir(exist_ok=True)
    for package in apt.fetch(work / "debs", *PACKAGED.values()):
        _run(["dpkg-deb", "--extract", str(package), str(root)], work)
    for name in PACKAGED:
        shutil.copy(root / "usr" / "bin" / name, out)


def _source(work: Path) -> Path:
    """The source, made fit for Go 1.19."""
    source = work / "gopath" / "src" / "k8s.io" / "kubernetes"
    if not source.exists():
        say("source package")
        described = apt.fetch_source(work, "kubernetes")
        part = work / "unpacked"
        shutil.rmtree(part, ignore_errors=True)
        _run(["dpkg-source", "--no-check", "-x", str(described), str(part)], work)
        source.parent.mkdir(parents=True, exist_ok=True)
        part.rename(source)
    # The vendored reflect2 1.0.1 dies with Go >= 1.18: Debian's 1.0.2 takes its place.
    vendored = source / "vendor" / "github.com" / "modern-go" / "reflect2"
    shutil.rmtree(vendored, ignore_errors=True)
    vendored.mkdir(parents=True)
    for file in _REFLECT2.iterdir():
        if file.suffix in (".go", ".s") and not file.name.endswith("_test.go"):
            shutil.copy(file, vendored)
    _generate(work, source)
    return source


def _generate(work: Path, source: Path) -> None:
    """The one generated file that is not in the source: the API's own description."""
    done = work / "openapi.done"
    if done.exists():
        return
    say("OpenAPI description")
    generator = work / "openapi-gen"
    _run(
        [
            str(GO),
            "build",
            "-o",
            str(generator),
            "./vendor/k8s.io/kube-openapi/cmd/openapi-gen",
        ],
        work,
        source,
    )
    packages = sorted(set(_described(source)))
    _run(
        [
            *(str(generator), "--logtostderr"),
            *("-h", "hack/boilerplate/boilerplate.generatego.txt"),
            *("-i", ",".join(packages)),
            *("-p", "k8s.io/kubernetes/pkg/generated/openapi"),
            *("-O", "zz_generated.openapi", "-r", str(work / "violations")),
        ],
        work,
        source,
    )
    done.touch()


def _described(source: Path) -> Iterator[str]:
    """Packages whose types are marked for it."""
    for top in ("cmd", "pkg", "plugin", "staging/src/k8s.io"):
        for file in (source / top).rglob("*.go"):
            path = str(file.relative_to(source))
            if re.search(
                r"code-generator|sample-apiserver|/testdata/|_test\.go$|zz_generated", path
            ):
                continue
            if "+k8s:openapi-gen=" in file.read_text():
                package = str(Path(path).parent).replace("staging/src/k8s.io/", "vendor/k8s.io/")
                yield f"k8s.io/kubernetes/{package}"


def _compile(work: Path, source: Path) -> None:
    """Without the clouds' own libraries (a third of the work) and without Docker's."""
    say("compiling " + ", ".join(COMPILED))
    said = {
        "gitVersion": f"v{VERSION}",
        "gitMajor": "1",
        "gitMinor": VERSION.split(".")[1],
        "gitTreeState": "archive",
        "buildDate": "2021-01-13T00:00:00Z",
    }
    holders = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    flags = " ".join(
        f"-X {prefix}{holder}.{key}={value}"
        for prefix in ("", "k8s.io/kubernetes/vendor/")
        for holder in holders
        for key, value in said.items()
    )
    options = ["-tags", "providerless,dockerless", "-ldflags", f"-s -w {flags}"]
    commands = [f"./cmd/{name}" for name in COMPILED]
    argv = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        str(GO),
        "build",
        "-v",
        *options,
        "-o",
        f"{work / 'out'}/",
        *commands,
    ]
    _watched(argv, work, source)


def _watched(argv: list[str], work: Path, source: Path) -> None:
    """Run it, and say now and then how many packages it has named."""
    count, told, wrong = 0, time.monotonic(), ""
    with subprocess.Popen(
        argv, cwd=source, env=_environment(work), stderr=subprocess.PIPE, text=True
    ) as go:
        assert go.stderr is not None
        for line in go.stderr:
            count += 1
            if " " in line:  # a package's name has none
                wrong += line
            if time.monotonic() - told > _TELL_S:
                told = time.monotonic()
                say(f"{count} of some 1,800 packages compiled")
    if go.returncode:
        raise BuildFailed(f"go build ended with {go.returncode}: {wrong[-3000:]}")


def _put(out: Path, cache: Path) -> None:
    """Each whole or not at all; the version comes last, and says that all is there."""
    (cache / "VERSION").unlink(missing_ok=True)
    for name in places.BINARIES:
        part = cache / f"{name}.part"
        shutil.copy(out / name, part)
        part.chmod(0o755)
        part.replace(cache / name)
    part = cache / "VERSION.part"
    part.write_text(VERSION + "\n")
    part.replace(cache / "VERSION")


def _run(argv: list[str], work: Path, cwd: Path | None = None) -> None:
    done = subprocess.run(
        argv, cwd=cwd or work, env=_environment(work), capture_output=True, text=True
    )
    if done.returncode:
        raise BuildFailed(f"{argv[0]}: {done.stderr.strip()[-1500:]}")


def _environment(work: Path) -> dict[str, str]:
    """Go's, with nothing from outside: neither modules nor its user's settings."""
    return {
        "PATH": f"{GO.parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(work),
        "GOPATH": str(work / "gopath"),
        "GOCACHE": str(work / "gocache"),
        "GO111MODULE": "off",
        "GOFLAGS": "",
        "CGO_ENABLED": "0",
    }


def main() -> None:
    try:
        build(places.cache())
    except (apt.CannotInstall, BuildFailed, OSError) as error:
        is_ci = os.environ.get("CI", "").lower() in ("true", "1")
        if "--or-skip" not in sys.argv or is_ci:
            sys.exit(f"kubernetes: {error}")
        say(f"{error}. The tests that need it are skipped.")


if __name__ == "__main__":
    main()
