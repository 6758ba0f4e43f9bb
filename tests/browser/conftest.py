"""A real Chromium, a real service, and pages that fail where anything goes wrong inside them."""

import re
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, expect, sync_playwright

from boa.server.http.dashboard import STATIC
from browser.chromium import ARGUMENTS, chromium
from browser.lab import STEADY, Lab, until

DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
PATIENCE_MS = 120_000.0
expect.set_options(timeout=PATIENCE_MS)
_failed = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("browser")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[_failed] = True
    return report


@pytest.fixture(scope="session")
def dashboard() -> None:
    if not (STATIC / "index.html").is_file():
        pytest.fail("no dashboard to look at: make web builds it")


# Not for the whole session: while it runs, no other test of this process can have an event loop.
@pytest.fixture(scope="module")
def browser(dashboard: None) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Jobs of three classes on two GPU types; nobody needs a token."""
    with Lab(tmp_path_factory.mktemp("lab"), **STEADY).running() as lab:
        lab.fill()
        yield lab


class Window:
    """Pages of one test. Errors inside them fail it, unless it has said that they will come."""

    def __init__(self, browser: Browser, shots: Path, scratch: Path) -> None:
        self._browser, self._shots, self._scratch = browser, shots, scratch
        self._pages: list[Page] = []
        self._expected: list[str] = []
        self.errors: list[str] = []

    def open(
        self,
        url: str,
        *,
        viewport: dict[str, int] = DESKTOP,
        dark: bool = False,
        phone: bool = False,
    ) -> Page:
        """In a browser that has never been here."""
        context = self._browser.new_context(
            viewport=viewport,  # type: ignore[arg-type]
            color_scheme="dark" if dark else "light",
            has_touch=phone,
            is_mobile=phone,
            device_scale_factor=2 if phone else 1,
            locale="en-GB",
            timezone_id="UTC",
        )
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.on("pageerror", lambda problem: self.errors.append(f"{type(problem)}: {problem}"))
        page.on("console", self._said)
        self._pages.append(page)
        page.goto(url)
        return page

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(f"{message.type}: {message.text} ({message.location['url']})")

    def expects(self, pattern: str) -> None:
        """Such an error is part of the test."""
        self._expected.append(pattern)

    def unexpected(self) -> list[str]:
        return [
            error
            for error in self.errors
            if not any(re.search(pattern, error) for pattern in self._expected)
        ]

    def keep(self, page: Page, name: str, *, whole: bool = False) -> Path:
        """A screenshot."""
        path = self._shots / f"{name}.png"
        page.screenshot(path=path, full_page=whole, animations="disabled")
        return path

    def close(self, failed: bool) -> None:
        for number, page in enumerate(self._pages):
            if failed:
                self._explain(page, self._scratch / f"failed-{number}.png")
            page.context.close()

    def _explain(self, page: Page, path: Path) -> None:
        """What somebody who was not there wants to see of a failure."""
        try:
            page.screenshot(path=path)
            print(f"\n{path}: {page.url}\n{page.locator('body').inner_text()}\n")
        except Error as problem:
            print(f"{page.url} cannot be looked at: {problem}")


@pytest.fixture
def window(browser: Browser, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Window]:
    shots = request.config.getoption("--screenshots") or tmp_path / "screenshots"
    window = Window(browser, shots, tmp_path)
    yield window
    unexpected = window.unexpected()
    window.close(request.node.stash.get(_failed, False) or bool(unexpected))
    assert not unexpected, "errors inside the page"


@pytest.fixture
def page(window: Window, lab: Lab) -> Page:
    """The lab's dashboard, as it comes."""
    return window.open(lab.url)


def expect_to_fit(page: Page, what: str) -> None:
    """Nobody has to scroll sideways, once all is drawn."""
    fits = "document.documentElement.scrollWidth <= innerWidth"
    until(f"{what} is no wider than the screen", lambda: page.evaluate(fits), patience_s=20.0)
