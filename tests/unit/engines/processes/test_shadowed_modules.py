"""Modules beside a script win over those of a warm parent, as they do in a process of its own."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from boa.engines.processes import shadowed_modules
from warm_runs import WARM, Scripts

HELD = "queue"
"""A module of the standard library that the parent imports here, and Python itself does not."""


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Scripts]:
    runs = Scripts(tmp_path)
    yield runs
    runs.close()


def how(runs: Scripts, text: str, *words: str, **given: object) -> tuple[str, list[str]]:
    """Whether the warm one of both was forked, and what it printed: the same as the cold one."""
    runs.script(f"{WARM}{text}\nprint('warm' if warm else 'cold')")
    (cold, cold_log), (warm, warm_log) = runs.both(
        sys.executable, *(words or ("script.py",)), **given
    )
    assert (cold.exit_code, warm.exit_code) == (0, 0), cold_log + warm_log
    *said, started = warm_log.splitlines()
    printed = [line for line in said if not line.startswith("[boa]")]
    assert printed == cold_log.splitlines()[:-1]
    assert (started == "cold") == (len(said) > len(printed))
    return started, said


@pytest.mark.parametrize("words", [("script.py",), ("-m", "script")])
@pytest.mark.parametrize("place", [f"{HELD}.py", f"{HELD}/__init__.py"])
def test_a_module_beside_the_script_wins_over_one_of_that_name_in_the_parent(
    runs: Scripts, place: str, words: tuple[str, ...]
) -> None:
    path = runs.code / place
    path.parent.mkdir(exist_ok=True)
    path.write_text("whose = 'mine'")
    runs.module(f"import {HELD}")
    started, (said, printed) = how(runs, f"import {HELD}; print({HELD}.whose)", *words)
    assert (started, printed) == ("cold", "mine")
    assert said == f"[boa] no warm start: {path} is not what was imported before"


def test_a_module_beside_the_script_is_there_for_imports_that_can_do_without_it(
    runs: Scripts,
) -> None:
    runs.module("try:\n    import extra\nexcept ImportError:\n    extra = None")
    assert how(runs, "import preloaded; print(preloaded.extra)") == ("warm", ["None"])
    runs.close()
    runs = Scripts(runs.root / "again")
    runs.module("try:\n    import extra\nexcept ImportError:\n    extra = None")
    (runs.code / "extra.py").touch()
    started, said = how(runs, "import preloaded; print(preloaded.extra.__name__)")
    assert (started, said[1:]) == ("cold", ["extra"])
    runs.close()


@pytest.mark.parametrize(
    "place", ["os.py", "sys.py", "data.py", f"{HELD}/data.txt", "parent.py", f"{HELD}.txt"]
)
def test_what_python_would_not_take_from_there_does_not_matter(runs: Scripts, place: str) -> None:
    """It has some modules built in; and a folder that is no package gives way to a module."""
    path = runs.code / place
    path.parent.mkdir(exist_ok=True)
    path.write_text("whose = 'mine'")
    runs.module(f"import {HELD}")
    names = f"os, sys, data, {HELD}" if place == "data.py" else f"os, sys, {HELD}"
    text = f"import {names}; print([hasattr(m, 'whose') for m in ({names})])"
    assert how(runs, text)[0] == "warm"


def test_modules_preloaded_from_the_scripts_own_folder_are_the_same(runs: Scripts) -> None:
    (runs.code / "mine.py").write_text("x = 1")
    (runs.code / "several").mkdir()
    (runs.code / "several" / "one.py").write_text("x = 2")
    runs.script(f"{WARM}import mine, several.one; print(warm, mine.x, several.one.x)")
    key = runs.command(
        sys.executable,
        "script.py",
        preload=("mine", "several.one"),
        env={"PYTHONPATH": str(runs.code)},
    )
    assert runs.end(key).exit_code == 0
    assert runs.log(key) == "True 1 2\n"


def test_a_folder_among_those_of_a_package_without_a_file_counts(runs: Scripts) -> None:
    for place, text in ((runs.modules, "'theirs'"), (runs.code, "'mine'")):
        (place / "several").mkdir()
        (place / "several" / "one.py").write_text(f"whose = {text}")
    runs.module("import several.one")
    started, said = how(runs, "import several.one; print(several.one.whose)")
    assert (started, said[1:]) == ("cold", ["mine"])


def test_a_safe_path_has_no_folder_that_is_searched_first(runs: Scripts) -> None:
    (runs.code / f"{HELD}.py").write_text("whose = 'mine'")
    runs.module(f"import {HELD}")
    text = f"import {HELD}; print(hasattr({HELD}, 'whose'))"
    assert how(runs, text, env={"PYTHONSAFEPATH": "1"}) == ("warm", ["False"])


def test_what_is_started_cold_after_all_sees_the_environment_before_the_imports(
    runs: Scripts,
) -> None:
    (runs.code / f"{HELD}.py").touch()
    runs.module(f"import os, {HELD}\nos.environ['IMPORTED'] = '1'\nfile = open(os.devnull)")
    text = (
        "import os\n"
        "print(sorted(k for k in os.environ))\n"
        "print([fd for fd in os.listdir('/proc/self/fd') if os.path.exists(f'/dev/fd/{fd}')])"
    )
    started, said = how(runs, text)
    assert started == "cold"
    assert "IMPORTED" not in said[1]


def test_names_looked_for_in_vain_are_noted_only_meanwhile() -> None:
    before = list(sys.meta_path)
    with shadowed_modules.missed() as names, pytest.raises(ImportError):
        __import__("no_such_module_at_all")
    with pytest.raises(ImportError):
        __import__("no_such_module_either")
    assert names == {"no_such_module_at_all"}
    assert sys.meta_path == before


def test_a_folder_that_cannot_be_read_has_no_modules(tmp_path: Path) -> None:
    imports = shadowed_modules.Imports(missed={"x"})
    assert imports.other(str(tmp_path / "missing")) == ""
    (tmp_path / "x.py").touch()
    assert imports.other(str(tmp_path)) == os.path.join(tmp_path, "x.py")
