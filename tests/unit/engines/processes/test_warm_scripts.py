"""Which commands can be forked from a warm parent, and what it imports for them."""

import os
import sys
import zipfile
from pathlib import Path

import pytest

from boa.engines.processes import warm_scripts
from boa.engines.processes.warm_scripts import Finder, Script, heavy_imports
from boa.model.job import JobSpec, Launcher
from replacing import make, promptly

PYTHON = os.path.basename(sys.executable)
ENV = {"PATH": os.path.dirname(sys.executable), "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("import torch\n")
    (tmp_path / "light.py").write_text("import numpy\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text("from torch import nn\n")
    return tmp_path


def find(
    code: Path,
    *run: str,
    preload: tuple[str, ...] | None = None,
    launcher: Launcher = "workers",
    **env: str,
) -> Script | None:
    spec = JobSpec(job_class="a", run=run, preload=preload, launcher=launcher)
    return Finder().find(spec, str(code), {**ENV, **env})


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (("python", "train.py"), ("train.py",)),
        (("python3", "./train.py", "--lr", "a b"), ("./train.py", "--lr", "a b")),
        ((sys.executable, "train.py"), ("train.py",)),
        (("python", "-u", "train.py"), ("train.py",)),
        (("python", "-m", "train", "-m"), ("-m", "train", "-m")),
        (("python", "-m", "package"), ("-m", "package")),
        (("sh", "-c", "python train.py  --lr=0.1"), ("train.py", "--lr=0.1")),
    ],
)
def test_a_script_that_imports_torch_can_be_forked(
    code: Path, run: tuple[str, ...], words: tuple[str, ...]
) -> None:
    found = find(code, *run)
    assert found is not None
    assert found.words == words
    assert found.recipe.modules == ("torch",)
    assert os.path.isabs(found.recipe.python)
    assert found.recipe.folder == "/"


@pytest.mark.parametrize(
    "run",
    [
        ("python",),
        ("python", "light.py"),
        ("python", "missing.py"),
        ("python", "package"),
        ("python", "-c", "import torch"),
        ("python", "-X", "dev", "train.py"),
        ("python", "-m"),
        ("python", "-m", "elsewhere"),
        ("no-such-folder/python", "train.py"),
        ("python9.9", "train.py"),
        ("pypy", "train.py"),
        ("torchrun", "train.py"),
        ("sh", "-c", "SEED=1 python train.py"),
        ("sh", "-c", "python train.py && echo done"),
        ("sh", "-c", "python train.py > log"),
        ("sh", "-c", "python train.py $SEED"),
        ("sh", "-c", "python train.py 'a'"),
        ("sh", "-c", "python train.py *"),
        ("sh", "-c", "python train.py ~"),
        ("sh", "-c", "python train.py\npython train.py"),
        ("sh", "-c", "python train.py", "more"),
        ("bash", "-c", "python train.py"),
    ],
)
def test_any_other_command_is_started_as_it_is(code: Path, run: tuple[str, ...]) -> None:
    assert find(code, *run) is None


def test_preload_says_what_is_imported_and_nothing_switches_it_off(code: Path) -> None:
    given = find(code, "python", "light.py", preload=("numpy", "scipy"))
    assert given is not None
    assert given.recipe.modules == ("numpy", "scipy")
    assert find(code, "python", "train.py", preload=()) is None
    assert find(code, "python", "-m", "elsewhere", preload=("torch",)) is not None
    assert find(code, "python", "missing.py", preload=("torch",)) is None


def test_torchrun_starts_its_workers_itself(code: Path) -> None:
    assert find(code, "python", "train.py", launcher="torchrun") is None
    assert find(code, "python", "train.py", launcher="single") is not None


def test_unbuffered_is_nothing_new_unless_the_job_wants_buffers(code: Path) -> None:
    assert find(code, "python", "-u", "train.py", PYTHONUNBUFFERED="") is None


@pytest.mark.parametrize(
    ("path", "depends"),
    [
        ("", False),
        ("/a", False),
        ("missing", False),
        (".", True),
        ("/a:package", True),
        ("/a:", True),
    ],
)
def test_where_the_search_path_depends_on_the_folder_so_does_the_parent(
    code: Path, path: str, depends: bool
) -> None:
    found = find(code, "python", "train.py", PYTHONPATH=path)
    assert found is not None
    assert found.recipe.folder == (str(code) if depends else "/")


def test_a_changed_script_is_looked_at_again(code: Path) -> None:
    finder = Finder()
    spec = JobSpec(job_class="a", run=("python", "train.py"))
    first = finder.find(spec, str(code), ENV)
    (code / "train.py").write_text("import torchvision, torch\n")
    second = finder.find(spec, str(code), ENV)
    assert first is not None
    assert second is not None
    assert (first.recipe.modules, second.recipe.modules) == (("torch",), ("torch", "torchvision"))
    (code / "train.py").write_text("\n")
    assert finder.find(spec, str(code), ENV) is None


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "folder"])
def test_a_script_that_is_no_plain_file_is_not_waited_for(code: Path, kind: str) -> None:
    make(kind, code / "train.py")
    assert promptly(lambda: find(code, "python", "train.py")) is None


def test_a_script_may_be_a_link(code: Path) -> None:
    (code / "linked.py").symlink_to(code / "train.py")
    assert find(code, "python", "linked.py") is not None


def test_a_script_replaced_by_one_of_the_same_age_and_size_is_looked_at_again(code: Path) -> None:
    finder = Finder()
    spec = JobSpec(job_class="a", run=("python", "train.py"))
    assert finder.find(spec, str(code), ENV) is not None
    stat = (code / "train.py").stat()
    (code / "train.py").write_text("import numpy"[: stat.st_size].ljust(stat.st_size))
    os.utime(code / "train.py", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (code / "train.py").stat().st_size == stat.st_size
    assert finder.find(spec, str(code), ENV) is None


def test_of_many_scripts_the_ones_used_last_are_remembered(
    code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_scripts, "MOST_KNOWN", 3)
    finder = Finder()
    for name in "abcad":
        (code / f"{name}.py").write_text("import torch\n")
        finder.find(JobSpec(job_class="a", run=("python", f"{name}.py")), str(code), ENV)
    assert [Path(path).stem for path in finder._known] == ["c", "a", "d"]


@pytest.mark.parametrize("name", ["app.pyz", "app.py", "train", "train.pyc"])
def test_what_may_be_no_text_is_left_to_python(code: Path, name: str) -> None:
    """Python runs what is in a zip, whatever it is called and whatever comes before it."""
    if name.startswith("app"):
        with zipfile.ZipFile(code / name, "w") as archive:
            archive.writestr("__main__.py", "import torch")
    else:
        (code / name).write_text("import torch")
    assert find(code, "python", name, preload=("torch",)) is None


def test_a_script_too_long_to_be_looked_at_is_left_to_python(code: Path) -> None:
    (code / "train.py").write_text("import torch\n" + "#" * warm_scripts.MOST_BYTES)
    assert find(code, "python", "train.py", preload=("torch",)) is None


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import torch", ("torch",)),
        ("import torch.nn as nn, os", ("torch",)),
        ("from torch.nn import functional", ("torch",)),
        ("import torchmetrics", ()),
        ("from . import torch", ()),
        ("from boa.train.torch import Elastic", ("boa.train.torch",)),
        ("from boa.train import torch", ("boa.train.torch",)),
        ("from boa.train import Session", ()),
        ("try:\n    import transformers\nexcept ImportError:\n    pass", ("transformers",)),
        ("if True:\n    import lightning", ("lightning",)),
        ("def f():\n    import torch", ()),
        ("import jax", ()),
        ("import torch, jax, accelerate", ("accelerate", "torch")),
        ("print('import torch')", ()),
        ("not python", ()),
        ("\0", ()),
        ("", ()),
        ("x = " + "(" * 5000, ()),
    ],
)
def test_what_a_script_imports_at_its_beginning(source: str, found: tuple[str, ...]) -> None:
    assert heavy_imports(source.encode()) == found
