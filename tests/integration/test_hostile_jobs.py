"""Jobs that want to become admin, on a real service: what they find, and what they do not."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from boa.client import Client
from boa.client.spawn import OwnService
from boa.errors import Refused
from other_users import passable_folder

TOKEN, VALUE = "a-token-that-is-long-enough-0123456789", "hunter2-and-more"
CONFIG = {"gpu_types": {"T4": {"price": 1.0, "max_nodes": 1}}, "backoff_s": 0.1}


@contextmanager
def serving(folder: Path, **config: object) -> Iterator[tuple[OwnService, Client]]:
    service = OwnService(folder, {**CONFIG, **config}, TOKEN)
    with service, service.client() as client:
        yield service, client


def printed(client: Client, script: str, **fields: object) -> str:
    job = client.submit({"class": "a", "run": ["sh", "-c", script], "retries": 0, **fields})
    client.wait(job["id"], pause_s=0.05)
    return "".join(client.logs(job["id"]))


def test_a_job_finds_the_services_token_neither_in_its_own_environment_nor_in_proc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the-clouds-own-key")
    monkeypatch.setenv("WANDB_MODE", "offline")
    with serving(tmp_path, pass_env=["WANDB_MODE"]) as (service, client):
        look = f"env; tr '\\0' '\\n' < /proc/{service.pid}/environ"
        text = printed(client, f"{look}; tr '\\0' '\\n' < /proc/$PPID/environ")
        assert "WANDB_MODE=offline" in text
        assert TOKEN not in text
        assert "the-clouds-own-key" not in text


def test_a_secret_is_set_given_masked_changed_and_missed(tmp_path: Path) -> None:
    with serving(tmp_path) as (service, client):
        client.set_secret("KEY", VALUE)
        show = 'echo ${#KEY}; echo "key: $KEY"'
        masked = f"{len(VALUE)}\nkey: {'*' * len(VALUE)}\n"
        assert printed(client, show, secrets=["KEY"]) == masked
        service.stop()
        service.start()  # another process, with the same key
        assert printed(client, show, secrets=["KEY"]) == masked
        client.set_secret("KEY", "shorter")
        assert printed(client, show, secrets=["KEY"]) == "7\nkey: *******\n"
        client.remove_secret("KEY")
        with pytest.raises(Refused, match=r"secrets\[0\]: got 'KEY'"):
            printed(client, show, secrets=["KEY"])
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in kept if VALUE.encode() in path.read_bytes()] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs as others")
def test_a_job_of_another_user_reaches_nothing_of_the_services() -> None:
    with passable_folder() as place, serving(place, run_as="nobody") as (service, client):
        data = service.folder / "data"
        client.set_secret("KEY", VALUE)
        script = f"""
            id -un
            for file in boa.db report.key secret.key owner; do cat {data}/$file && echo READ; done
            for folder in {data} {data}/runs {data}/checkpoints; do ls $folder && echo LISTED; done
            cat /proc/{service.pid}/environ && echo READ; ls /proc/{service.pid}/fd && echo LISTED
            kill -9 {service.pid} && echo KILLED
            echo kept > $BOA_CHECKPOINT_DIR/x && cat $BOA_CHECKPOINT_DIR/x
        """
        text = printed(client, script, secrets=["KEY"])
        assert text.startswith("nobody\n")
        assert not [word for word in ("READ", "LISTED", "KILLED") if word in text]
        assert text.endswith("kept\n")
