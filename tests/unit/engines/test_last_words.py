"""The line of a log that tells most of why a run failed."""

from pathlib import Path

import pytest

from boa.engines.last_words import LONGEST, TAIL_BYTES, last_words, last_words_of, most_telling

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
TORCHRUN = f"""\
step 1
[rank1]: Traceback (most recent call last):
[rank1]:   File "train.py", line 3, in <module>
[rank1]: {OOM}
E1116 torch/distributed/elastic: failed (exitcode: 1)
Traceback (most recent call last):
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
=====================================================
train.py FAILED
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TORCHRUN, OOM),
        ("loading\nValueError: no such file\nsee above\n", "ValueError: no such file"),
        ("loading\ntrain.py: error: --lr is needed\n\n", "train.py: error: --lr is needed"),
        ("\x1b[31mRuntimeError: boom\x1b[0m\n", "RuntimeError: boom"),
        ("", ""),
    ],
)
def test_an_error_counts_more_than_the_line_that_comes_last(text: str, said: str) -> None:
    assert most_telling(text) == said


def test_only_the_end_of_a_long_log_is_read_and_a_long_line_is_cut(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_text("RuntimeError: long ago\n" + "x" * (2 * TAIL_BYTES))
    assert len(last_words(str(log))) == LONGEST


def test_the_worker_that_failed_first_is_asked_and_one_that_was_killed_only_for_errors(
    tmp_path: Path,
) -> None:
    (tmp_path / "0.log").write_text("fine\n")
    (tmp_path / "3.log").write_text("RuntimeError: NCCL error\n")
    folder = str(tmp_path)
    assert last_words_of(folder, 1, "worker 3: exit code 1") == "RuntimeError: NCCL error"
    assert last_words_of(folder, -9, "killed by SIGKILL") == ""
    assert last_words_of(folder, 1, "exit code 1") == "fine"
    assert last_words_of(folder, 0, "") == last_words_of(folder, None, "lost") == ""


def test_no_log_or_none_that_is_a_plain_file_has_no_words(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert last_words(str(tmp_path / "folder")) == last_words(str(tmp_path / "none")) == ""
