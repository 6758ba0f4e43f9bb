"""One method per thing that the service can be asked."""

from __future__ import annotations

import codecs
import math
import time
from collections.abc import Collection, Generator, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from boa.client.access import AccessQuestions
from boa.client.documents import document_of, job_path
from boa.client.notify import NotifyQuestions
from boa.client.probing import probed
from boa.client.reports import ReportQuestions
from boa.client.sweeps import SweepQuestions
from boa.client.terms import TermQuestions
from boa.client.what_if import WhatIfQuestions
from boa.client.wire import Parameters, Wire, events_of
from boa.errors import BoaError, NoServer, Refused
from boa.formats.parts import class_name
from boa.model.job_spec import ENDED, JobSpec

if TYPE_CHECKING:
    from boa.api import answers, estimates
    from boa.api import files as file_answers
    from boa.api import history as history_answers
    from boa.api import money as money_answers
    from boa.api import plans as plan_answers
    from boa.api.classes import ClassDocument, RetriedClass

PATIENCE_S = 60.0
"""How long a server that was there may be away (a restart), or say that it cannot answer now (its
database is locked), before that is an error."""
NOT_NOW = (429, 503)
"""HTTP statuses of a server that cannot answer now."""
QUIET_S = 60.0
"""A stream that says nothing for so long is asked for anew; events have heartbeats in between."""
PAUSE_S = 0.5
PAGE = 1000


class Client(
    AccessQuestions,
    NotifyQuestions,
    ReportQuestions,
    SweepQuestions,
    TermQuestions,
    WhatIfQuestions,
):
    """`url` and `token` default to $BOA_SERVER (else http://127.0.0.1:8420) and $BOA_TOKEN, or else
    to the token that a service of the same user has made for itself.

    Raises NoServer where none answers, Refused with the server's own words where it says no.
    """

    def __init__(
        self, url: str | None = None, token: str | None = None, timeout: float = 15.0
    ) -> None:
        self._wire = Wire(url, token, timeout)

    @property
    def url(self) -> str:
        return self._wire.url

    @property
    def token(self) -> str | None:
        """The token that goes with every request; None: none is known."""
        return self._wire.credentials.token

    def close(self) -> None:
        self._wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def health(self) -> answers.Health:
        return cast("answers.Health", self._wire.ask("GET", "health"))

    def live(self) -> answers.Live:
        """Everything that is watched, at this moment."""
        return cast("answers.Live", self._wire.ask("GET", "live"))

    # Jobs

    def submit(self, spec: JobSpec | Mapping[str, Any]) -> answers.JobDetails:
        """A job spec, or a mapping as in a job file (`boa schema job`): `package: workdir` has that
        folder packed and uploaded, and an `env_file` is read here."""
        return self._job(self._wire.ask("POST", "jobs", body=self.resolved(document_of(spec))))

    def submit_many(self, specs: Iterable[JobSpec | Mapping[str, Any]]) -> list[str]:
        """Ids of jobs that are submitted together: all of them, or none where one is wrong. At
        most 5,000 at a time, of 16 MiB."""
        packed: dict[str, str] = {}
        jobs = [self.resolved(document_of(spec), packed) for spec in specs]
        found = self._wire.ask("POST", "jobs/batch", body={"jobs": jobs})
        return cast("answers.Submitted", found)["ids"]

    def probe(self, spec: JobSpec | Mapping[str, Any]) -> estimates.JobEstimate:
        """An estimate, after a short run of a class that nobody knows: the job is submitted on its
        fewest GPUs, stopped once it has told enough of itself, or after the time that the estimate
        offers, and its work is thrown away. A class that is known is not probed."""
        return probed(self, spec)

    def jobs(
        self,
        *,
        all: bool = False,
        job_class: str | None = None,
        states: Collection[str] = (),
        search: str | None = None,
        limit: int | None = None,
    ) -> list[answers.JobRow]:
        """Newest first: the active ones, or `all`; in these states, or any; with this in their
        name, class or id."""
        found = self.job_list(
            all=all, job_class=job_class, states=states, search=search, limit=limit
        )
        return found["jobs"]

    def job_list(
        self,
        *,
        all: bool = False,
        job_class: str | None = None,
        states: Collection[str] = (),
        search: str | None = None,
        limit: int | None = None,
    ) -> answers.JobList:
        """The same, with the server's time; longer lists than one answer's are put together."""
        found: list[answers.JobRow] = []
        before: int | None = None
        wanted = {"class": job_class, "state": ",".join(states) or None, "search": search}
        while True:
            page = PAGE if limit is None else min(PAGE, limit - len(found))
            asked: Parameters = {"all": all, **wanted, "limit": page, "before": before}
            got = cast("answers.JobList", self._wire.ask("GET", "jobs", asked))
            found += got["jobs"]
            before = got["before"]
            if before is None or (limit is not None and len(found) >= limit):
                return {"jobs": found, "now": got["now"], "before": before}

    def job(self, job: str) -> answers.JobDetails:
        return self._job(self._wire.ask("GET", job_path(job)))

    def stop(self, job: str) -> answers.JobDetails:
        """Ask it to stop; its end comes later (`wait`)."""
        return self._job(self._wire.ask("POST", f"{job_path(job)}/stop"))

    def wait(
        self, job: str, *, pause_s: float = PAUSE_S, patience_s: float = PATIENCE_S
    ) -> answers.JobDetails:
        """The job once it has ended. A server that is away or in trouble is waited for."""
        patience = _Patience(patience_s)
        while True:
            try:
                found = self.job(job)
            except (NoServer, Refused) as trouble:
                patience.lose(trouble)
            else:
                patience.regain()
                if found["state"] in ENDED:
                    return found
            time.sleep(pause_s)

    def logs(
        self,
        job: str,
        *,
        attempt: int | None = None,
        rank: int = 0,
        tail: int | None = None,
        since: float | None = None,
        follow: bool = False,
        patience_s: float = PATIENCE_S,
    ) -> Generator[str, None, None]:
        """A worker's output, in pieces. `follow`: until the job has ended, or the run that is
        named. `since`: only what was printed then or later, in Unix seconds."""
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        asked: Parameters = {"attempt": attempt, "rank": rank, "tail": tail, "follow": follow}
        asked = {**asked, "since": since}
        skip: int | None = None
        patience = _Patience(patience_s if follow else 0.0)
        while True:
            again: Parameters = {**asked, "tail": None, "since": None, "skip": skip}
            now = asked if skip is None else again
            try:
                with self._wire.stream(f"{job_path(job)}/logs", now, quiet_s=QUIET_S) as text:
                    patience.regain()
                    skip = int(text.headers.get("boa-log-offset", 0))
                    for piece in text.pieces:
                        skip += len(piece)
                        yield decode(piece)
                yield decode(b"", True)
                if not follow or _is_over(self.job(job), attempt):
                    return
            except (NoServer, Refused) as trouble:  # or it was quiet
                patience.lose(trouble)  # where it stopped is where it goes on
            time.sleep(PAUSE_S)

    def log_runs(self, job: str) -> list[file_answers.LogRun]:
        """Runs of a job that have logs, oldest first."""
        found = self._wire.ask("GET", f"{job_path(job)}/logs/runs")
        return cast("file_answers.LogRuns", found)["runs"]

    def job_history(self, job: str) -> history_answers.JobHistory:
        """The GPUs that it held, and what it said of itself."""
        found = self._wire.ask("GET", f"{job_path(job)}/history")
        return cast("history_answers.JobHistory", found)

    # Cluster and money

    def nodes(self) -> list[answers.Node]:
        return self.node_list()["nodes"]

    def node_list(self) -> answers.NodeList:
        """The same, with the server's time."""
        return cast("answers.NodeList", self._wire.ask("GET", "nodes"))

    def cost(
        self,
        *,
        by: str | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> money_answers.Cost:
        """`by`: day, class, job, team, user, payer or tag:KIND."""
        asked = {"by": by, "since": since, "until": until}
        return cast("money_answers.Cost", self._wire.ask("GET", "cost", asked))

    def cluster_history(
        self,
        *,
        since: float | None = None,
        until: float | None = None,
        points: int | None = None,
    ) -> history_answers.History:
        """The cluster and its cost over time; of the last 24 hours if no time is given."""
        asked: Parameters = {"since": since, "until": until, "points": points}
        return cast("history_answers.History", self._wire.ask("GET", "history", asked))

    def budget(self) -> money_answers.Budget:
        return cast("money_answers.Budget", self._wire.ask("GET", "budget"))

    def set_budget(
        self, budget: float | None = None, max_spend: float | None = None
    ) -> money_answers.Budget:
        """USD per hour; None: as it is. `budget` math.inf: the configured one; `max_spend`
        math.inf: none."""
        body: dict[str, float | None] = {}
        if budget is not None:
            body["budget_per_hour"] = None if budget == math.inf else budget
        if max_spend is not None:
            body["max_spend_per_hour"] = None if max_spend == math.inf else max_spend
        return cast("money_answers.Budget", self._wire.ask("PUT", "budget", body=body))

    # Planning

    def plan(self) -> answers.LivePlan:
        return cast("answers.LivePlan", self._wire.ask("GET", "plan"))

    def classes(self) -> list[str]:
        return cast("answers.ClassList", self._wire.ask("GET", "classes"))["classes"]

    def job_class(self, name: str) -> ClassDocument:
        """The document of a class: all that was learned of it."""
        return cast("ClassDocument", self._wire.ask("GET", f"classes/{class_name(name, 'class')}"))

    def retry_class(
        self, name: str, *, gpu_type: str | None = None, width: int | None = None
    ) -> RetriedClass:
        """Have widths used again, or tried, at which jobs of a class failed: all, or those on this
        GPU type and at this width."""
        path = f"classes/{class_name(name, 'class')}/retry"
        asked: Parameters = {"gpu_type": gpu_type, "width": width}
        return cast("RetriedClass", self._wire.ask("POST", path, asked))

    def why(self, name: str) -> plan_answers.Why:
        """Why the plan gives a class its widths: what others would take and cost."""
        path = f"classes/{class_name(name, 'class')}/why"
        return cast("plan_answers.Why", self._wire.ask("GET", path))

    def frontier(self) -> plan_answers.Frontier:
        """The best average JCT for every budget, for the workload of the plan in force."""
        return cast("plan_answers.Frontier", self._wire.ask("GET", "frontier"))

    def preview(
        self, budget: float | None = None, *, jct_s: float | None = None
    ) -> plan_answers.Preview:
        """The plan for another budget (USD per hour), or for a wished average JCT (seconds): one of
        the two. Changes nothing."""
        asked: Parameters = {"budget_per_hour": budget, "jct_s": jct_s}
        return cast("plan_answers.Preview", self._wire.ask("GET", "preview", asked))

    def metrics(self) -> dict[str, float]:
        """Prometheus figures without labels, by name."""
        with self._wire.stream("metrics", root="") as answer:
            lines = [line.rpartition(" ") for line in answer.lines()]
        return {
            name: float(value)
            for name, _, value in lines
            if name and not name.startswith("#") and "{" not in name
        }

    # Events

    def history(
        self, *, after: int | None = None, job: str | None = None, limit: int = 100
    ) -> list[answers.Event]:
        """Events by rising number: the first so many after a number, or else the newest (up to
        1,000)."""
        found: list[answers.Event] = []
        while True:
            page = min(PAGE, limit - len(found))
            asked: Parameters = {"after": after, "job": job, "limit": page}
            got = cast("answers.EventList", self._wire.ask("GET", "events", asked))["events"]
            found += got
            if after is None or len(got) < page or len(found) >= limit:
                return found
            after = found[-1]["number"]

    def events(
        self,
        *,
        after: int | None = None,
        job: str | None = None,
        patience_s: float = PATIENCE_S,
    ) -> Generator[answers.Event, None, None]:
        """Events as they happen, from now on or after a number; none is lost to a lost connection.

        Ends never, but in an error when a server stays away or in trouble.
        """
        patience = _Patience(patience_s)
        while True:
            try:
                if after is None:
                    newest = self.history(limit=1)
                    after = newest[-1]["number"] if newest else 0
                headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
                asked = {"job": job}
                with self._wire.stream("events", asked, headers, quiet_s=QUIET_S) as lines:
                    patience.regain()
                    for found in events_of(lines.lines()):
                        event = cast("answers.Event", found)
                        after = event["number"]
                        yield event
            except (NoServer, Refused) as trouble:
                patience.lose(trouble)
            time.sleep(PAUSE_S)

    def _job(self, answer: answers.JobAnswer) -> answers.JobDetails:
        return answer["job"]


class _Patience:
    """How long a server may be away that was there before, or unable to answer."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._there = False
        self._since: float | None = None

    def regain(self) -> None:
        self._there, self._since = True, None

    def lose(self, trouble: BoaError) -> None:
        """Raises it on when there is no patience left, never was a server, or it said no."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if isinstance(trouble, Refused):  # it is there; asked again, it may answer, or never
            self._there = trouble.status in NOT_NOW
        if not self._there or now - self._since >= self._seconds:
            raise trouble


def _is_over(job: answers.JobDetails, attempt: int | None) -> bool:
    """Whether the job has ended, or at least this run of its."""
    if job["state"] in ENDED:
        return True
    return attempt is not None and job["attempts"] >= attempt and job["attempt"] != attempt
