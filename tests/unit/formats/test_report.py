"""The report: what `boa.train` sends is what the format declares."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from boa.formats import report
from boa.formats.report import REPORT, read_report
from boa.train import session


class Kept:
    """In place of the sender: what it was given."""

    def __init__(self) -> None:
        self.reports: list[dict[str, Any]] = []

    def offer(self, document: dict[str, Any], **_: bool) -> None:
        self.reports.append(document)

    def close(self) -> None:
        """When the process ends."""


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Reports of a script that says all it can, and of one that has said nothing yet."""
    monkeypatch.setenv("BOA_ATTEMPT", "2")
    kept = Kept()
    monkeypatch.setattr(session.Session, "_new_sender", lambda self: kept)
    script = session.Session()
    script.ready()
    script.rescaled(dict.fromkeys(session.PARTS, 0.5))
    metrics: dict[str, object] = {f"{n:0100}": n for n in range(session.MOST_METRICS + 5)}
    script.report(64, 10, float("nan"), 1, {"x" * 101: 1.0, "\x1b": 2.0, **metrics})
    return kept.reports


def test_what_training_scripts_send_is_accepted_by_schema_and_reader(
    sent: list[dict[str, Any]],
) -> None:
    assert len(sent) == 2
    for document in sent:
        assert Draft202012Validator(REPORT.schema()).is_valid(document)
        assert read_report(document, "7").attempt == 2
    assert len(read_report(sent[1], "7").metrics) == session.MOST_METRICS


def test_training_scripts_know_the_limits_that_the_format_declares() -> None:
    assert (session.MOST_METRICS, session.LONGEST_NAME) == (
        report.MAX_METRICS,
        report.MAX_METRIC_NAME,
    )


def test_null_is_as_good_as_leaving_out_what_a_job_does_not_know() -> None:
    needed = {"attempt": 1, "uptime_s": 1.0, "epoch": 0, "progress": 0, "units": 0}
    nothing = dict.fromkeys(("step", "loss", "metrics", "rescale"))
    assert Draft202012Validator(REPORT.schema()).is_valid({**needed, **nothing})
    assert read_report({**needed, **nothing}, "1") == read_report(needed, "1")
