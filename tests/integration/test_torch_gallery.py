"""The gallery: small scripts as people write them, each going on at widths 1, 2 and 1."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from boa.train import checkpoints
from ports import held_port

ROOT = Path(__file__).resolve().parents[2]
GALLERY = {"gan": [], "ema": [], "weighted": [], "streaming": [], "compile": ["--backend", "eager"]}
STEPS = 64
"""Of an epoch, in all of them."""


def trained(name: str, home: Path, width: int, epochs: int) -> str:
    """What rank 0 says."""
    script = str(ROOT / "examples" / f"train_{name}.py")
    command = [sys.executable, script, "--epochs", str(epochs), *GALLERY[name]]
    with held_port() as port:
        ranks = []
        for rank in range(width):
            own = {
                "OMP_NUM_THREADS": "1",
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(width),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "BOA_CHECKPOINT_DIR": str(home),
            }
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
            ranks.append(subprocess.Popen(command, env={**os.environ, **own}, **pipes))  # type: ignore[call-overload]
        said = [rank.communicate(timeout=600)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * width, "\n".join(said)
    return str(said[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", GALLERY)
def test_an_example_goes_on_at_another_width(tmp_path: Path, name: str) -> None:
    for epochs, width in enumerate((1, 2, 1), 1):
        said = trained(name, tmp_path, width, epochs)
        assert re.findall(r"epoch (\d+)", said) == [str(epochs - 1)], "no epoch is done twice"
        newest = checkpoints.latest(tmp_path)
        assert newest is not None
        at = checkpoints.progress_at(newest)
        assert at is not None
        assert (at.epoch, at.step) == (epochs, epochs * STEPS)


def test_the_table_of_lines_is_what_the_examples_have() -> None:
    table = (ROOT / "docs" / "migration.md").read_text()
    rows = re.findall(r"^\| \[`(train_\w+\.py)`\].*\| (\d+) \|$", table, re.MULTILINE)
    assert {f"train_{name}.py" for name in GALLERY} < {name for name, _ in rows}
    for name, lines in rows:
        text = (ROOT / "examples" / name).read_text().rpartition('"""')[0]
        code = (ROOT / "examples" / name).read_text()[len(text) :]
        assert len(re.findall(r"^.*(?:\brun\.|Elastic).*$", code, re.MULTILINE)) == int(lines), name
