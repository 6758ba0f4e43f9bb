"""The Kubernetes client against a server that answers as told, and the files that it reads."""

import base64
import http.server
import json
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from boa import kubeconfig, kubelogin
from boa.errors import FileError, InputError
from boa.kubeconfig import Access
from boa.kubelink import (
    Conflict,
    Exists,
    Invalid,
    Kube,
    KubeTrouble,
    NotFound,
    Refused,
    nodes,
    pods,
)
from boa.kubelogin import FileToken, Login

Answer = tuple[int, dict[str, str], Any]


class Api:
    """Answers what it is told to, in order, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: list[Answer | Callable[[], Answer] | None] = []
        """None: hang up."""
        self.asked: list[tuple[str, str, dict[str, str], Any]] = []
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length)) if length else None
                api.asked.append((self.command, self.path, dict(self.headers), body))
                answer = api.answers.pop(0)
                if answer is None:
                    self.close_connection = True
                    return
                status, headers, said = answer() if callable(answer) else answer
                data = said.encode() if isinstance(said, str) else json.dumps(said).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                return

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def says(self, status: int = 200, said: Any = None, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers.append((status, named, {} if said is None else said))


@pytest.fixture
def api() -> Iterator[Api]:
    api = Api()
    yield api
    api.server.shutdown()
    api.server.server_close()


@pytest.fixture
def kube(api: Api) -> Iterator[Kube]:
    kube = Kube(Access(server=api.url, namespace="ns", tls=False, login=Login("secret")))
    yield kube
    kube.close()


# Asking


def test_we_say_who_we_are(api: Api, kube: Kube) -> None:
    api.says(said={"kind": "Node"})
    assert kube.get(nodes("n1")) == {"kind": "Node"}
    method, path, headers, _ = api.asked[0]
    assert (method, path) == ("GET", "/api/v1/nodes/n1")
    assert headers["Authorization"] == "Bearer secret"


def test_lists_are_read_page_by_page_and_begun_again_where_their_time_is_over(
    api: Api, kube: Kube
) -> None:
    api.says(said={"items": [{"n": 1}], "metadata": {"continue": "more"}})
    api.says(410, {"message": "too old", "reason": "Expired"})
    api.says(said={"items": [{"n": 1}], "metadata": {"continue": "more"}})
    api.says(said={"items": [{"n": 2}], "metadata": {}})
    found = kube.list(pods("ns"), labels="a=b")
    assert found == [{"n": 1}, {"n": 2}]
    assert "continue=more" in api.asked[3][1]
    assert "labelSelector=a%3Db" in api.asked[3][1]


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (403, "Forbidden", Refused),
        (404, "NotFound", NotFound),
        (409, "AlreadyExists", Exists),
        (422, "Invalid", Invalid),
        (400, "BadRequest", Invalid),
        (500, "InternalError", KubeTrouble),
    ],
)
def test_errors_have_the_servers_words(
    api: Api, kube: Kube, status: int, reason: str, kind: type[KubeTrouble]
) -> None:
    api.says(status, {"message": "because", "reason": reason})
    with pytest.raises(kind, match="because") as trouble:
        kube.create(pods("ns"), {})
    assert type(trouble.value) is kind
    assert (trouble.value.status, trouble.value.reason) == (status, reason)


def test_what_is_gone_already_needs_no_deleting(api: Api, kube: Kube) -> None:
    api.says(404, {"reason": "NotFound"})
    kube.delete(pods("ns", "p"), grace_s=5, uid="u")
    sent = {"gracePeriodSeconds": 5, "preconditions": {"uid": "u"}}
    assert sent.items() <= api.asked[0][3].items()
    api.says(409, {"reason": "Conflict"})
    kube.delete(pods("ns", "p"), uid="u")  # another has its name
    api.says(409, {"reason": "Conflict"})
    with pytest.raises(Conflict):
        kube.delete(pods("ns", "p"))


def test_a_connection_that_breaks_off_is_no_matter_where_asking_twice_is_as_asking_once(
    api: Api, kube: Kube
) -> None:
    api.answers.append(None)
    api.says(said={"kind": "Pod"})
    assert kube.get(pods("ns", "p")) == {"kind": "Pod"}
    api.answers.append(None)
    with pytest.raises(KubeTrouble, match="cannot be asked"):
        kube.create(pods("ns"), {})
    assert [asked[0] for asked in api.asked] == ["GET", "GET", "POST"]


def test_told_to_come_back_later_we_do(api: Api, kube: Kube) -> None:
    api.says(429, "slow down", Retry_After="0")
    api.says(said={"kind": "Pod"})
    assert kube.get(pods("ns", "p")) == {"kind": "Pod"}
    api.says(429, "slow down", Retry_After="3600")
    with pytest.raises(KubeTrouble, match="slow down"):
        kube.get(pods("ns", "p"))


def test_two_counts_of_one_quota_are_tried_again(api: Api, kube: Kube) -> None:
    api.says(409, {"reason": "Conflict"})
    api.says(said={"kind": "Pod"})
    assert kube.create(pods("ns"), {}) == {"kind": "Pod"}


def test_nothing_is_changed_where_somebody_keeps_us_from_it(api: Api, kube: Kube) -> None:
    def no() -> None:
        raise KubeTrouble("the lease is another's")

    kube.before_change = no
    for change in (
        lambda: kube.create(pods("ns"), {}),
        lambda: kube.patch(pods("ns", "p"), {}),
        lambda: kube.replace(pods("ns", "p"), {}),
        lambda: kube.delete(pods("ns", "p")),
    ):
        with pytest.raises(KubeTrouble, match="lease"):
            change()
    assert not api.asked
    api.says(said={"status": {"allowed": True}})
    assert kube.may("create", "pods")
    api.says(said={})
    kube.create(pods("ns"), {}, dry_run=True)
    assert api.asked[-1][1].endswith("?dryRun=All&fieldValidation=Strict")


def test_who_is_no_api_server_is_named(api: Api, kube: Kube) -> None:
    api.says(said="<html>")
    with pytest.raises(KubeTrouble, match="no Kubernetes API server"):
        kube.get(nodes())
    nobody = Kube(Access(server="http://127.0.0.1:9", namespace="ns", tls=False))
    with pytest.raises(KubeTrouble, match=r"127\.0\.0\.1:9 cannot be asked"):
        nobody.get(nodes())
    nobody.close()


def test_a_table_has_rows_by_column(api: Api, kube: Kube) -> None:
    columns = [{"name": "Name"}, {"name": "Status"}]
    api.says(said={"columnDefinitions": columns, "rows": [{"cells": ["n1", "Ready"]}]})
    assert kube.table(nodes()) == [{"Name": "n1", "Status": "Ready"}]


def test_a_stream_is_read_as_it_comes_and_refused_as_any_answer(api: Api, kube: Kube) -> None:
    api.says(said="one\ntwo\n")
    with kube.stream(f"{pods('ns', 'p')}/log", follow="true") as pieces:
        assert b"".join(pieces) == b"one\ntwo\n"
    api.says(400, {"message": "waiting to start"})
    with (
        pytest.raises(Invalid, match="waiting"),
        kube.stream(f"{pods('ns', 'p')}/log", follow="true"),
    ):
        pass


def test_a_token_that_was_replaced_is_read_again(api: Api, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("old\n")
    access = Access(server=api.url, namespace="ns", tls=False, login=FileToken(tmp_path / "token"))
    kube = Kube(access)
    api.says(said={})
    kube.get(nodes())
    (tmp_path / "token").write_text("new\n")
    api.says(401, {"message": "Unauthorized"})
    api.says(said={})
    kube.get(nodes())
    kube.close()
    assert [asked[2]["Authorization"] for asked in api.asked] == [
        "Bearer old",
        "Bearer old",
        "Bearer new",
    ]


# Where and as whom


def config(**user: Any) -> dict[str, Any]:
    cluster = {"server": "https://one.test:6443", "insecure-skip-tls-verify": True}
    return {
        "current-context": "one",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "mine"}},
            {"name": "two", "context": {"cluster": "none", "user": "u"}},
        ],
    }


def written(folder: Path, **user: Any) -> str:
    path = folder / "config"
    path.write_text(json.dumps(config(**user)))  # which is YAML, too
    return str(path)


def test_a_kubeconfig_says_where_and_as_whom(tmp_path: Path) -> None:
    access = kubeconfig.find(written(tmp_path, token="t"))
    assert (access.server, access.namespace) == ("https://one.test:6443", "mine")
    assert access.login.token() == "t"
    assert kubeconfig.find(written(tmp_path), namespace="other").namespace == "other"


def test_of_several_files_the_first_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, token in (("a", "first"), ("b", "second")):
        (tmp_path / name).mkdir()
        written(tmp_path / name, token=token)
    paths = [tmp_path / "missing", tmp_path / "a/config", tmp_path / "b/config"]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, paths)))
    assert kubeconfig.find().login.token() == "first"


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from a file")
    assert kubeconfig.find(written(tmp_path, tokenFile="token")).login.token() == "from a file"


def test_in_a_pod_the_account_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("mine")
    (tmp_path / "namespace").write_text("here")
    with pytest.raises(InputError, match="certificate-authority"):
        kubeconfig.in_cluster("10.0.0.1", "443", account=tmp_path)


@pytest.mark.parametrize(
    ("user", "field"),
    [
        ({"username": "me", "password": "x"}, "users.username"),
        ({"as": "root", "token": "t"}, "users.as"),
        ({"auth-provider": {"name": "gcp"}}, "users.auth-provider"),
        ({"client-certificate-data": "?"}, "client-certificate-data"),
        ({"exec": {"command": "x", "apiVersion": "v0"}}, "users.exec.apiVersion"),
    ],
)
def test_what_would_make_us_somebody_else_is_refused(
    tmp_path: Path, user: dict[str, Any], field: str
) -> None:
    with pytest.raises(InputError, match=field):
        kubeconfig.find(written(tmp_path, **user))


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is none"):
        kubeconfig.find(str(tmp_path / "nothing"))
    with pytest.raises(InputError, match=r"config has no context 'three'; .*: one, two"):
        kubeconfig.find(written(tmp_path), context="three")
    with pytest.raises(InputError, match="cluster"):
        kubeconfig.find(written(tmp_path), context="two")
    (tmp_path / "odd").write_text("{[")
    with pytest.raises(FileError, match="no YAML"):
        kubeconfig.find(str(tmp_path / "odd"))


# Plugins


def plugin(folder: Path, script: str) -> dict[str, Any]:
    path = folder / "plugin"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"command": "./plugin", "apiVersion": "client.authentication.k8s.io/v1beta1"}


def test_a_plugin_is_asked_again_when_its_token_ends(tmp_path: Path) -> None:
    said = '{"status": {"token": "%s", "expirationTimestamp": "%s"}}'
    script = f"""echo x >> {tmp_path}/asked
test "$KUBERNETES_EXEC_INFO" || exit 1
printf '{said}' "$(wc -l < {tmp_path}/asked | tr -d ' ')" 2020-01-01T00:00:00Z"""
    login = kubeconfig.find(written(tmp_path, exec=plugin(tmp_path, script))).login
    assert [login.token(), login.token()] == ["1", "2"]


def test_a_plugins_token_is_kept_while_it_holds(tmp_path: Path) -> None:
    script = f"""echo x >> {tmp_path}/asked
echo '{{"status": {{"token": "t"}}}}'"""
    login = kubeconfig.find(written(tmp_path, exec=plugin(tmp_path, script))).login
    assert {login.token() for _ in range(3)} == {"t"}
    assert (tmp_path / "asked").read_text() == "x\n"


@pytest.mark.parametrize(
    ("script", "said"),
    [("echo not allowed >&2; exit 3", "not allowed"), ("echo {}", "no ExecCredential")],
)
def test_a_plugin_that_fails_says_why(tmp_path: Path, script: str, said: str) -> None:
    login = kubeconfig.find(written(tmp_path, exec=plugin(tmp_path, script))).login
    with pytest.raises(kubelogin.NoLogin, match=said):
        login.token()


def test_data_is_base64(tmp_path: Path) -> None:
    data = base64.b64encode(b"no certificate").decode()
    with pytest.raises(InputError, match="client-certificate"):
        kubeconfig.find(written(tmp_path, **{"client-certificate-data": data}))
