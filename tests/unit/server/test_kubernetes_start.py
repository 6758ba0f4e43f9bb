"""`boa serve` on a cluster that refuses it: which setting is wrong, in one line and with code 2."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa.errors import InputError
from boa.kubelink import KubeTrouble, NotFound, Refused
from boa.server import engine_and_cloud
from boa.server.service import build
from live import config


class FakeKube:
    """A cluster that answers everything with this."""

    namespace, server = "lab", "https://kube.test:6443"

    def __init__(self, answer: KubeTrouble) -> None:
        self.answer = answer
        self.before_change = lambda: None

    def get(self, *_: Any, **__: Any) -> Any:
        raise self.answer

    list = create = replace = patch = delete = get

    def close(self) -> None: ...


def started(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: KubeTrouble) -> None:
    said = replace(config(folder), engine="kubernetes", cloud="kubernetes")
    said = replace(said, kubernetes=replace(said.kubernetes, kubeconfig="/etc/kube.conf"))
    monkeypatch.delenv(engine_and_cloud.IN_CLUSTER, raising=False)
    monkeypatch.setattr(engine_and_cloud, "kubernetes", lambda config: FakeKube(answer))
    build(said, "http://127.0.0.1:1").close()


@pytest.mark.parametrize(
    ("answer", "field", "words"),
    [
        (
            NotFound('namespaces "lab" not found', status=404),
            "kubernetes.namespace",
            ["https://kube.test:6443 has no namespace lab", "kubectl create namespace lab"],
        ),
        (
            Refused('leases "boa" is forbidden: User "x" cannot get it', status=403),
            "kubernetes",
            ['User "x" cannot get it', "namespace lab", "rights", "kubernetes.namespace"],
        ),
        (
            KubeTrouble("Unauthorized", status=401),
            "kubernetes.kubeconfig",
            ["https://kube.test:6443 does not accept the account of /etc/kube.conf"],
        ),
    ],
)
def test_a_refusal_names_what_is_to_be_changed_and_where_one_sees_more(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: KubeTrouble,
    field: str,
    words: list[str],
) -> None:
    with pytest.raises(InputError) as said:
        started(tmp_path, monkeypatch, answer)
    assert (said.value.field, said.value.exit_code) == (field, 2)
    for word in [*words, "boa serve --dry-run"]:
        assert word in str(said.value)


def test_a_cluster_that_does_not_answer_is_no_fault_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KubeTrouble, match="cannot be asked") as said:
        started(tmp_path, monkeypatch, KubeTrouble("the API server cannot be asked"))
    assert said.value.exit_code == 1
