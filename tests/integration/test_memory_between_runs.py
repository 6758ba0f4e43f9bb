"""A large training under the local engine goes from one run to the next through memory."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from boa.engines.local import LocalEngine
from boa.train.checkpoints import newest_first
from boa.train.keeper import pointer
from boa.train.keeper.client import listens
from keeping import until
from memory_jobs import MemoryJob

pytestmark = pytest.mark.slow


@contextmanager
def under_local(root: Path, share: float) -> Iterator[MemoryJob]:
    engine = LocalEngine(root / "runs", log_bytes=10**6, memory_share=share)
    job = MemoryJob(root, engine)
    try:
        yield job
    finally:
        job.close()
        shutil.rmtree(keeper_of(root), ignore_errors=True)  # then it ends


def keeper_of(root: Path) -> Path:
    return root / "runs" / "job" / "keeper"


def test_a_run_finds_in_memory_what_the_last_one_left(tmp_path: Path) -> None:
    with under_local(tmp_path, 0.2) as job:
        before = job.ended(job.run(1))
        assert pointer.newest(job.home) is not None  # not on the disk yet
        assert not newest_first(job.home)
        assert listens(keeper_of(tmp_path))
        said = job.run(2)
        assert job.began(said) == before
        assert job.began(job.run(1)) == job.ended(said)
        until(lambda: newest_first(job.home))


def test_without_a_share_of_memory_nobody_begins_a_keeper(tmp_path: Path) -> None:
    with under_local(tmp_path, 0.0) as job:
        before = job.ended(job.run(1, how="disk"))
        assert len(newest_first(job.home)) == 1
        assert not keeper_of(tmp_path).exists()
        assert job.began(job.run(1, how="disk")) == before


def test_a_job_in_a_container_finds_its_keeper_and_is_written_from_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "asked"
    fake = tmp_path / "bin" / "apptainer"
    fake.parent.mkdir()
    fake.write_text(
        f'#!{sys.executable} -IS\nimport json, os, sys\nopen({str(asked)!r}, "a").write('
        'json.dumps(sys.argv[1:]) + "\\n")\nat = sys.argv.index("docker://image")\n'
        "os.execvp(sys.argv[at + 1], sys.argv[at + 1:])\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    with under_local(tmp_path, 0.2) as job:
        before = job.ended(job.run(1, image="image"))
        until(lambda: newest_first(job.home))
        run, writer = [json.loads(line) for line in asked.read_text().splitlines()]
        for words in (run, writer):
            binds = [words[n + 1] for n, word in enumerate(words) if word == "--bind"]
            assert str(keeper_of(tmp_path)) in binds
        assert "boa.train.torch.memory.flushing" in writer
        assert job.began(job.run(1, image="image")) == before
