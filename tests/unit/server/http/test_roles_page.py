"""The page on roles names every route that needs more than to read, with its role."""

import re
from pathlib import Path

from boa.server.http.permissions import needed
from fakes import FakeService

PAGE = Path(__file__).parents[4] / "docs" / "api.md"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def documented() -> dict[tuple[str, str], str]:
    """The role of every route in the table, by method and path."""
    table = PAGE.read_text().partition("<!-- roles -->")[2].partition("<!-- end -->")[0]
    found = {}
    for row in table.strip().splitlines()[2:]:
        routes, role, _ = (cell.strip() for cell in row.strip("|").split("|"))
        for method, path in re.findall(r"`([A-Z]+) (/[^`]*)`", routes):
            assert (method, path) not in found, "once"
            found[method, f"/api/v1{path}"] = role
    return found


def test_the_table_of_roles_has_every_route_that_needs_more_than_to_read(tmp_path: Path) -> None:
    paths = FakeService(tmp_path).ask("GET", "/api/openapi.json").json()["paths"]
    routes: dict[tuple[str, str], str] = {
        (method.upper(), path): needed(method.upper(), path)[0]
        for path, operations in paths.items()
        for method in operations
        if method.upper() in METHODS
    }
    expected = {route: role for route, role in routes.items() if role != "viewer"}
    assert expected
    expected["POST", "/api/v1/jobs/{job}/report"] = "none: the run's own token"
    assert documented() == expected
