"""Answers of API servers and of their plugins that make no sense: one clear error each."""

import json
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from boa.kubeconfig import Access
from boa.kubelink import Invalid, Kube, KubeTrouble, nodes, pods
from boa.kubelogin import ExecLogin, Login, NoLogin

VERSION = "client.authentication.k8s.io/v1"


def kube(answer: Callable[[httpx.Request], httpx.Response], login: Login | None = None) -> Kube:
    access = Access(server="http://k", namespace="ns", tls=False, login=login or Login("t"))
    made = Kube(access)
    made._http = httpx.Client(base_url="http://k", transport=httpx.MockTransport(answer))
    return made


def saying(text: str | bytes, status: int = 200) -> Kube:
    return kube(lambda _: httpx.Response(status, content=text))


@pytest.mark.parametrize("text", ["null", "5", "[]", '[["a", 1]]', '"ab"', "[" * 5000, b"\xff", ""])
def test_an_answer_that_is_no_object_is_no_api_servers(text: str | bytes) -> None:
    with pytest.raises(KubeTrouble, match="no Kubernetes API server"):
        saying(text).get(pods("ns", "p"))
    with pytest.raises(KubeTrouble, match="no Kubernetes API server"):
        saying(text).list(pods("ns"))
    with pytest.raises(KubeTrouble, match="no Kubernetes API server"):
        saying(text).table(nodes())


@pytest.mark.parametrize("text", ['{"items": 5}', '{"items": [], "metadata": 5}'])
def test_an_answer_that_is_no_list_is_none(text: str) -> None:
    with pytest.raises(KubeTrouble, match="no list of"):
        saying(text).list(pods("ns"))


@pytest.mark.parametrize("text", ["{}", '{"columnDefinitions": 5}', '{"columnDefinitions": [5]}'])
def test_an_answer_that_is_no_table_is_none(text: str) -> None:
    with pytest.raises(KubeTrouble, match="no table of"):
        saying(text).table(nodes())


def test_an_empty_list_may_be_null() -> None:
    assert saying('{"items": null, "metadata": null}').list(pods("ns")) == []


@pytest.mark.parametrize("status", [413, 422])
def test_what_is_too_large_is_invalid(status: int) -> None:
    with pytest.raises(Invalid, match="too large"):
        saying("too large", status).create(pods("ns"), {})


@pytest.mark.parametrize("text", ["null", "5", "[" * 5000])
def test_an_error_in_odd_words_is_that_error(text: str) -> None:
    with pytest.raises(KubeTrouble) as trouble:
        saying(text, 500).get(pods("ns", "p"))
    assert trouble.value.status == 500


# Plugins


def plugin(folder: Path, printed: bytes, code: int = 0, **more: Any) -> ExecLogin:
    folder.joinpath("said").write_bytes(printed)
    where = ">&2" if code else ""
    script = f'cat "$1" {where}; test -z "$WORD" || printf "$WORD"; exit {code}'
    args = ["-c", script, "sh", os.fspath(folder / "said")]
    entry = {"command": "sh", "args": args, "apiVersion": VERSION, **more}
    return ExecLogin(entry, {}, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


@pytest.mark.parametrize("said", [b"null", b"5", b"[]", b'{"status": 5}', b"\xff\xfe", b"[" * 5000])
def test_a_plugin_that_prints_no_login_gives_none(tmp_path: Path, said: bytes) -> None:
    with pytest.raises(NoLogin, match="sh gave no ExecCredential"):
        plugin(tmp_path, said).token()


def test_a_plugin_that_fails_in_odd_letters_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoLogin, match="sh does not log us in: no \ufffd"):
        plugin(tmp_path, b"no \xff", 3).token()


def test_a_certificate_that_is_none_is_no_login(tmp_path: Path) -> None:
    status = {"clientCertificateData": "nonsense", "clientKeyData": "nonsense"}
    with pytest.raises(NoLogin, match="its certificate cannot be used"):
        plugin(tmp_path, json.dumps({"status": status}).encode()).token()


def test_a_variable_without_a_value_is_empty(tmp_path: Path) -> None:
    said = json.dumps({"status": {"token": "mine"}}).encode()
    assert plugin(tmp_path, said, env=[{"name": "WORD"}]).token() == "mine"
    assert plugin(tmp_path, said, env=[{"name": "WORD", "value": None}]).token() == "mine"


@pytest.mark.parametrize(
    "entry", [{"env": 5}, {"env": [5]}, {"env": [{"value": "a"}]}, {"env": {"A": "b"}}, {"args": 5}]
)
def test_a_plugins_entry_that_makes_no_sense_is_no_login(
    tmp_path: Path, entry: dict[str, Any]
) -> None:
    with pytest.raises(NoLogin, match="sh does not log us in: its "):
        plugin(tmp_path, b"", **entry).token()


@pytest.mark.parametrize("env", [{"name": "A=B", "value": "c"}, {"name": "A", "value": "\0"}])
def test_a_variable_that_no_program_can_have_is_no_login(
    tmp_path: Path, env: dict[str, str]
) -> None:
    with pytest.raises(NoLogin, match="sh does not log us in"):
        plugin(tmp_path, b"", env=[env]).token()


def test_who_is_no_longer_logged_in_after_a_refusal_is_told_as_such(tmp_path: Path) -> None:
    login = plugin(tmp_path, b'{"status": {"token": "old"}}')
    asked = kube(lambda _: httpx.Response(401), login)
    login.token()
    tmp_path.joinpath("said").write_bytes(b"null")
    with pytest.raises(KubeTrouble, match="gave no ExecCredential"):
        asked.get(pods("ns", "p"))


@pytest.mark.parametrize("token", ["a\nb", "\u00e9", "\ufffd"])
def test_a_token_that_cannot_be_sent_is_told(token: str) -> None:
    with pytest.raises(KubeTrouble, match="is no token"):
        kube(lambda _: httpx.Response(200, json={}), Login(token)).get(pods("ns", "p"))
