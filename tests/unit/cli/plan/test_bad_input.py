"""Whatever a file or an option holds: one clear error, the path to the field, exit code 2."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from boa.cli import main

GOOD = """\
version: 1
gpu_types:
  T4: {price: 1.0, gpus_per_node: 4}
  A100: {price: 3.0}
classes:
  - name: a
    arrivals_per_hour: 4
    rescale_s: 20
    epochs:
      - {work_s: 600, speedup: {T4: {amdahl: 0.9}}}
  - name: b
    arrivals_per_hour: 2
    epochs:
      - {work_s: 300, speedup: {T4: {power: 0.8}, A100: {power: 0.9, scale: 3}}}
  - name: c
    arrivals_per_hour: 1
    min_gpus: 2
    max_gpus: 16
    epochs:
      - {work_s: 900, speedup: {T4: {table: {1: 1, 4: 3.5}}, A100: {amdahl: 0.99}}}
      - {work_s: 900, speedup: {T4: {amdahl: 0.99}}}
"""


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that must fail with exit code 2 and one line; give the line."""
    code = main(arguments)
    said = capsys.readouterr()
    assert code == 2, said.err
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert len(said.err) < 500
    return said.err


def write(folder: Path, content: str | bytes, name: str = "workload.yaml") -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def test_the_good_workload_is_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", write(tmp_path, GOOD), "--budget", "20", "--json"]) == 0


EPOCH = "{work_s: 900, speedup: {T4: {table: {1: 1, 4: 3.5}}, A100: {amdahl: 0.99}}}"
MISTAKES = {
    "an unknown field": ("    rescale_s: 20", "    rescale: 20", "classes[0].rescale"),
    "an unknown top field": ("version: 1", "version: 1\nnodes: 3", "nodes"),
    "a missing field": ("    arrivals_per_hour: 2\n", "", "classes[1].arrivals_per_hour"),
    "a missing version": ("version: 1\n", "", "version"),
    "another version": ("version: 1", "version: 7", "version"),
    "a negative number": ("rescale_s: 20", "rescale_s: -20", "classes[0].rescale_s"),
    "a negative rate": ("per_hour: 4", "per_hour: -4", "classes[0].arrivals_per_hour"),
    "not a number": ("price: 3.0", "price: .nan", "gpu_types.A100.price"),
    "infinity": ("work_s: 600", "work_s: .inf", "classes[0].epochs[0].work_s"),
    "text for a number": ("work_s: 600", "work_s: long", "classes[0].epochs[0].work_s"),
    "true for a number": ("work_s: 600", "work_s: true", "classes[0].epochs[0].work_s"),
    "work of zero": ("work_s: 600", "work_s: 0", "classes[0].epochs[0].work_s"),
    "a free GPU": ("price: 1.0", "price: 0", "gpu_types.T4.price"),
    "half a node": ("gpus_per_node: 4", "gpus_per_node: 0.5", "gpu_types.T4.gpus_per_node"),
    "no epochs": (
        "epochs:\n      - {work_s: 600, speedup: {T4: {amdahl: 0.9}}}",
        "epochs: []",
        "classes[0].epochs",
    ),
    "an unknown GPU type": ("T4: {amdahl: 0.9}", "H100: {amdahl: 0.9}", "[0].speedup.H100"),
    "a limit for an unknown GPU type": ("max_gpus: 16", "max_gpus: {H100: 2}", "max_gpus.H100"),
    "a speedup of zero": ("{1: 1, 4: 3.5}", "{1: 0, 4: 3.5}", "epochs[0].speedup.T4.table.1"),
    "a negative speedup": ("4: 3.5", "4: -3.5", "classes[2].epochs[0].speedup.T4.table.4"),
    "a width of zero": ("{1: 1, 4: 3.5}", "{0: 1}", "classes[2].epochs[0].speedup.T4.table.0"),
    "an empty table": ("{1: 1, 4: 3.5}", "{}", "classes[2].epochs[0].speedup.T4.table"),
    "two curves in one": ("{amdahl: 0.9}", "{amdahl: 1, power: 1}", "classes[0].epochs[0]"),
    "no curve": ("{amdahl: 0.9}", "{scale: 2}", "classes[0].epochs[0].speedup.T4"),
    "an unknown curve": ("{amdahl: 0.9}", "{log: 0.9}", "classes[0].epochs[0].speedup.T4.log"),
    "more than all in parallel": ("amdahl: 0.9}", "amdahl: 1.9}", "speedup.T4.amdahl"),
    "a base over the limit": ("max_gpus: 16", "max_gpus: 1", "classes[2].epochs[0].speedup.T4"),
    "a table over the limit": ("{1: 1, 4: 3.5}", "{32: 1}", "classes[2].epochs[0].speedup.T4"),
    "the same class twice": ("name: b", "name: a", "classes[1].name"),
    "a class without a name": ("name: b", "name: ''", "classes[1].name"),
    "no classes": (GOOD[GOOD.index("classes:") :], "classes: []\n", "classes"),
    "classes that are no list": (GOOD[GOOD.index("classes:") :], "classes: {a: 1}\n", "classes"),
    "no GPU types": ("  T4: {price: 1.0, gpus_per_node: 4}\n  A100: {price: 3.0}\n", "", "gpu_"),
    "a class that no GPU type can run to the end": (
        "- {work_s: 900, speedup: {T4: {amdahl: 0.99}}}",
        "- {work_s: 9, speedup: {A100: {power: 1}}}\n      "
        "- {work_s: 9, speedup: {T4: {power: 1}}}",
        "classes[2].epochs",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_workload_is_named_with_its_path(
    mistake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after, field = MISTAKES[mistake]
    assert GOOD.count(before) >= 1
    path = write(tmp_path, GOOD.replace(before, after, 1))
    assert field in refused(capsys, "plan", path, "--budget", "20")


@pytest.mark.parametrize("command", ["plan", "frontier", "budget", "workload describe"])
def test_every_command_refuses_a_bad_workload(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"plan": ["--budget", "9"], "budget": ["--jct", "900"]}.get(command, [])
    path = write(tmp_path, GOOD.replace("work_s: 600", "work_s: -1"))
    said = refused(capsys, *command.split(), path, *options, "--json")
    assert f"{path}: classes[0].epochs[0].work_s" in said


@pytest.mark.parametrize(
    "content", ["", "just text", "- 1\n- 2\n", "42", "null", '"text"', "[]", "# nothing\n", "true"]
)
@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_a_file_that_is_no_mapping(
    content: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, content, f"w.{suffix}")
    refused(capsys, "plan", path, "--budget", "20")


@pytest.mark.parametrize(
    "content",
    [
        "a: !!bool x",
        "!!timestamp x",
        "a: [1, 2",
        "a: b: c",
        "\t- x",
        "{]",
        "a: *unknown",
        "!!python/object:os.system {}",
        "%",
        "&",
    ],
)
def test_a_file_that_is_no_yaml(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(capsys, "plan", write(tmp_path, content), "--budget", "20")


def test_a_file_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "plan", str(tmp_path / "none.yaml"), "--budget", "20")
    assert "none.yaml: no such file" in said


def test_a_folder_instead_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert str(tmp_path) in refused(capsys, "plan", str(tmp_path), "--budget", "20")


def test_a_name_that_no_file_can_have(capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "plan", "x" * 5000, "--budget", "20")


MEGABYTE = 1024**2
JUNK = {
    "binary": bytes(range(256)) * (MEGABYTE // 256),
    "zeros": b"\0" * MEGABYTE,
    "one long word": b"a" * MEGABYTE,
    "lines of text": b"some words of text\n" * (MEGABYTE // 19),
    "open brackets": b"[" * MEGABYTE,
    "open braces": b"{" * MEGABYTE,
    "dashes": b"- " * (MEGABYTE // 2),
    "spaces": b" " * MEGABYTE,
}


@pytest.mark.parametrize("suffix", ["yaml", "json"])
@pytest.mark.parametrize("kind", JUNK)
def test_a_hundred_megabytes_of_junk_end_within_seconds(
    kind: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"junk.{suffix}"
    with path.open("wb") as junk:
        for _ in range(100):
            junk.write(JUNK[kind])
    began = time.process_time()
    said = refused(capsys, "plan", str(path), "--budget", "20")
    path.unlink()
    assert "junk" in said or "the file" in said
    assert time.process_time() - began < 10


@pytest.mark.parametrize("pair", ["[]", "{}"])
@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_deep_nesting_is_no_crash(
    pair: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = pair[0] if pair == "[]" else '{"a":'
    content = opened * 100_000 + "1" + pair[1] * 100_000
    refused(capsys, "plan", write(tmp_path, content, f"deep.{suffix}"), "--budget", "20")


def test_nesting_by_indentation_is_no_crash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = "".join(" " * n + "a:\n" for n in range(3000))
    refused(capsys, "plan", write(tmp_path, content), "--budget", "20")


def test_aliases_that_would_grow_without_end_are_no_crash(tmp_path: Path) -> None:
    lines = ["version:", "  - &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"  - &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    path = write(tmp_path, "\n".join([*lines, "gpu_types: {}", "classes: []"]))
    script = f"import sys, boa.cli; sys.exit(boa.cli.main(['plan', {path!r}, '--budget', '20']))"
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"error: {path}: version: got ")
    assert len(ran.stderr) < 500


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_number_too_large_for_any_machine(
    digits: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = GOOD.replace("work_s: 600", f"work_s: {'9' * digits}")
    refused(capsys, "plan", write(tmp_path, content), "--budget", "20")


@pytest.mark.parametrize("suffix", ["yaml", "json"])
@pytest.mark.parametrize("change", ["bom", "crlf", "both"])
def test_files_from_windows_are_read_like_any_other(
    change: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = GOOD if suffix == "yaml" else _as_json()
    if change != "bom":
        content = content.replace("\n", "\r\n")
    if change != "crlf":
        content = "\ufeff" + content
    path = write(tmp_path, content, f"w.{suffix}")
    assert main(["plan", path, "--budget", "20"]) == 0, capsys.readouterr().err


def _as_json() -> str:
    import json

    import yaml

    return json.dumps(yaml.safe_load(GOOD), indent=1)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-5", "0", "abc", "", "1e999", "40$"])
@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("plan", "--budget"),
        ("frontier", "--budget"),
        ("frontier", "--min-budget"),
        ("frontier", "--max-budget"),
        ("budget", "--jct"),
    ],
)
def test_an_option_that_is_no_amount_is_named_with_its_value(
    command: str, option: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, command, write(tmp_path, GOOD), option, value)
    assert option in said
    assert repr(value) in said
    assert "a finite number" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan"],
        ["plan", "WORKLOAD"],
        ["plan", "WORKLOAD", "--budget"],
        ["plan", "WORKLOAD", "--budget", "20", "--solver", "magic"],
        ["plan", "WORKLOAD", "--budget", "20", "--routing", "any"],
        ["plan", "WORKLOAD", "--budget", "20", "--routing", "epoch"],
        ["plan", "WORKLOAD", "--budget", "20", "--billing", "never"],
        ["plan", "WORKLOAD", "--budget", "20", "--gap", "-1"],
        ["plan", "WORKLOAD", "--budget", "20", "--gap", "nan"],
        ["plan", "WORKLOAD", "--budget", "20", "--seed", "1.5"],
        ["plan", "WORKLOAD", "--budget", "20", "--time-limit-s", "0"],
        ["plan", "WORKLOAD", "--budget", "20", "--plot", "picture.gif"],
        ["plan", "WORKLOAD", "--budget", "20", "--unknown"],
        ["plan", "WORKLOAD", "more", "--budget", "20"],
        ["frontier", "WORKLOAD", "--points", "1"],
        ["frontier", "WORKLOAD", "--points", "many"],
        ["frontier", "WORKLOAD", "--plot", "picture"],
        ["frontier", "WORKLOAD", "--min-budget", "30", "--max-budget", "20"],
        ["frontier", "WORKLOAD", "--boot-s", "60"],
        ["frontier", "WORKLOAD", "--billing", "gpu", "--boot-s", "60"],
        ["frontier", "WORKLOAD", "--billing", "node", "--boot-s", "-1"],
        ["frontier", "WORKLOAD", "--billing", "node", "--boot-s", "soon"],
        ["frontier", "WORKLOAD", "--billing", "node", "--reclaim-s", "60"],
        ["plan", "WORKLOAD", "--budget", "20", "--boot-s", "60"],
        ["plan", "WORKLOAD", "--budget", "20", "--billing", "node", "--reclaim-s", "60"],
        ["evaluate", "WORKLOAD"],
        ["budget", "WORKLOAD"],
        ["schema", "unknown"],
        ["schema"],
        ["unknown"],
        ["--unknown"],
    ],
)
def test_a_command_line_that_makes_no_sense(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, GOOD)
    refused(capsys, *[path if word == "WORKLOAD" else word for word in arguments])


@pytest.mark.parametrize("option", ["--output", "--plot"])
@pytest.mark.parametrize("target", ["none/out.png", "folder.png", "workload.yaml/out.png"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_done(
    option: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder.png").mkdir()
    path = write(tmp_path, GOOD)
    before = sorted(tmp_path.rglob("*"))
    said = refused(capsys, "plan", path, "--budget", "20", option, str(tmp_path / target))
    assert f"{option} " in said
    assert target in said
    assert sorted(tmp_path.rglob("*")) == before
