"""The dashboard's files: served as they were built, small, to everybody, and nothing besides."""

from pathlib import Path

import pytest

from boa.server.http.dashboard import takes_gzip
from fakes import FakeService

INDEX = '<!doctype html><script type="module" src="/assets/index-1a2b.js"></script>'
SCRIPT = "console.log('nothing is shown yet');\n" * 200
FILES = {
    "index.html": INDEX,
    "favicon.svg": "<svg/>",
    "assets/index-1a2b.js": SCRIPT,
    "assets/index-3c4d.css": "body { margin: 0 }",
    "assets/odd.xyz": "?",
    "secret.txt": "never sent",
}
AS_IT_IS = {"Accept-Encoding": "identity"}


@pytest.fixture
def built(tmp_path: Path) -> FakeService:
    for name, text in FILES.items():
        file = tmp_path / "static" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    (tmp_path / "beside.txt").write_text("not ours to send")
    return FakeService(tmp_path, token="s3cret")


@pytest.mark.parametrize(
    ("path", "file", "media_type"),
    [
        ("/", "index.html", "text/html; charset=utf-8"),
        ("/assets/index-1a2b.js", "assets/index-1a2b.js", "text/javascript; charset=utf-8"),
        ("/assets/index-3c4d.css", "assets/index-3c4d.css", "text/css; charset=utf-8"),
        ("/assets/odd.xyz", "assets/odd.xyz", "application/octet-stream"),
        ("/favicon.svg", "favicon.svg", "image/svg+xml"),
    ],
)
def test_what_was_built_is_served_to_everybody(
    built: FakeService, path: str, file: str, media_type: str
) -> None:
    for headers in ({}, AS_IT_IS):
        answer = built.ask("GET", path, headers=headers)
        assert answer.status_code == 200
        assert answer.text == FILES[file]
        assert answer.headers["content-type"] == media_type


@pytest.mark.parametrize("path", ["/", "/assets/index-1a2b.js", "/favicon.svg"])
def test_a_browser_is_told_to_take_nothing_from_elsewhere(built: FakeService, path: str) -> None:
    headers = built.ask("GET", path).headers
    rules = headers["content-security-policy"].split("; ")
    assert "default-src 'self'" in rules
    assert "connect-src 'self'" in rules
    assert "frame-ancestors 'none'" in rules
    assert not any("unsafe" in rule for rule in rules if not rule.startswith("style-src"))
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_the_page_is_asked_for_again_and_its_files_never(built: FakeService) -> None:
    assert built.ask("GET", "/").headers["cache-control"] == "no-cache"
    caching = built.ask("GET", "/assets/index-1a2b.js").headers["cache-control"]
    assert "immutable" in caching
    assert "max-age=31536000" in caching


def test_a_page_that_has_not_changed_is_not_sent_again(built: FakeService) -> None:
    first = built.ask("GET", "/")
    again = built.ask("GET", "/", headers={"If-None-Match": f'"x", {first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert built.ask("GET", "/", headers={"If-None-Match": '"other"'}).status_code == 200


def test_files_travel_packed_where_that_is_smaller(built: FakeService) -> None:
    packed = built.ask("GET", "/assets/index-1a2b.js", headers={"Accept-Encoding": "br, gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(SCRIPT) / 10
    plain = built.ask("GET", "/assets/index-1a2b.js", headers=AS_IT_IS)
    assert "content-encoding" not in plain.headers
    assert int(plain.headers["content-length"]) == len(SCRIPT)
    assert plain.headers["etag"] != packed.headers["etag"]
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    tiny = built.ask("GET", "/assets/odd.xyz", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in tiny.headers


@pytest.mark.parametrize(
    ("accepted", "taken"),
    [
        ("", False),
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("*", True),
        ("gzip;q=0, br", False),
        ("gzip; q=0.0", False),
        ("br, zstd", False),
        ("xgzip", False),
    ],
)
def test_who_takes_gzip_says_so(accepted: str, taken: bool) -> None:
    assert takes_gzip(accepted) is taken


@pytest.mark.parametrize(
    "path",
    [
        "/assets/",
        "/assets/nothing.js",
        "/assets/..%2findex.html",
        "/assets/..%2f..%2fbeside.txt",
        "/assets/%2e%2e%2fsecret.txt",
        "/assets/..%5csecret.txt",
        "/assets/index-1a2b.js%00.css",
    ],
)
def test_no_other_file_can_be_asked_for(built: FakeService, path: str) -> None:
    answer = built.ask("GET", path, headers={"Authorization": "Bearer s3cret"})
    assert answer.status_code == 404
    assert "never sent" not in answer.text
    assert "not ours" not in answer.text


@pytest.mark.parametrize("path", ["/secret.txt", "/index.html", "/assets/a/b.js", "/assets"])
def test_without_the_token_there_is_nothing_beyond_the_dashboard_s_own_files(
    built: FakeService, path: str
) -> None:
    assert built.ask("GET", path).status_code == 401


def test_without_a_token_other_machines_get_not_even_the_page(tmp_path: Path) -> None:
    answer = FakeService(tmp_path).ask("GET", "/", headers={"Host": "evil.example"})
    assert answer.status_code == 403


@pytest.mark.parametrize("path", ["/", "/assets/index-1a2b.js", "/api/v1/health"])
def test_head_is_answered_as_get_is(built: FakeService, path: str) -> None:
    got, asked = built.ask("GET", path), built.ask("HEAD", path)
    assert asked.status_code == 200
    assert asked.headers["content-type"] == got.headers["content-type"]


def test_files_cannot_be_written(built: FakeService) -> None:
    headers = {"Authorization": "Bearer s3cret"}
    for method in ("PUT", "POST", "DELETE"):
        assert built.ask(method, "/assets/index-1a2b.js", headers=headers).status_code == 405


def test_a_service_keeps_the_dashboard_that_it_began_with(
    built: FakeService, tmp_path: Path
) -> None:
    (tmp_path / "static" / "index.html").unlink()
    (tmp_path / "static" / "assets" / "index-1a2b.js").unlink()
    assert built.ask("GET", "/").text == INDEX
    assert built.ask("GET", "/assets/index-1a2b.js").text == SCRIPT


def test_where_none_was_built_the_page_says_how(tmp_path: Path) -> None:
    (tmp_path / "static" / "assets").mkdir(parents=True)
    service = FakeService(tmp_path)
    answer = service.ask("GET", "/")
    assert "make web" in answer.text
    assert "Node 20" in answer.text
    assert answer.headers["content-type"].startswith("text/html")
    assert "content-security-policy" in answer.headers
    assert service.ask("GET", "/assets/index-1a2b.js").status_code == 404
    assert service.ask("GET", "/favicon.ico").status_code == 404
