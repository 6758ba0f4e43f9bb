"""The script that the README shows, run as it stands there."""

import re
from pathlib import Path

from training import run_alone

README = Path(__file__).resolve().parents[3] / "README.md"
ROUND_IT = """
import os, signal
load, save, step = lambda folder: {}, lambda state, folder: None, lambda state, batch: 0.5
def batches(epoch, context):
    print(epoch)
    if epoch == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGTERM)
    return [[1], [2]]
"""


def test_the_script_of_the_readme_goes_on_in_the_epoch_that_it_was_stopped_in(
    tmp_path: Path,
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.S)
    (shown,) = (block for block in blocks if "train.new_checkpoint()" in block)
    job = {"BOA_CHECKPOINT_DIR": str(tmp_path), "BOA_EPOCHS": "4", "BOA_JOB_ID": "1"}
    assert run_alone(ROUND_IT + shown, "2", **job).split() == ["0", "1", "2"]
    assert run_alone(ROUND_IT + shown, "9", **job).split() == ["2", "3"]
