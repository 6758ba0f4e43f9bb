"""Requests about sweeps: submitted whole, stopped whole; each written down."""

from concurrent.futures import Future

from boa.errors import InputError
from boa.formats.sweep import SweepSpec, drawn
from boa.model.access import NOBODY, Caller
from boa.model.sweep import Sweep
from boa.runtime.audit import audited
from boa.runtime.fingerprint import fingerprint
from boa.runtime.job_requests import JobRequests
from boa.scheduler.observe import commands
from boa.scheduler.state import Draft
from boa.scheduler.terms import sweeping


class SweepRequests(JobRequests):
    """The part of `snapshot.Control` that changes sweeps."""

    def submit_sweep(
        self, spec: SweepSpec, *, owner: str = "", team: str = "", by: Caller | None = None
    ) -> "Future[Sweep]":
        draws = drawn(spec)
        self.places.check(draws[0].spec, by or NOBODY, "job.")  # here, as below: it reads files
        codes = [fingerprint(one.spec) for one in draws[:1]] * len(draws)  # all run the same files

        def apply(draft: Draft) -> Sweep:
            self.vault.check(spec.job, by or NOBODY, "job.")
            try:
                jobs = commands.submit_many(
                    draft,
                    [one.spec for one in draws],
                    self.scheduler.decider.gpu_types,
                    self.config.max_nodes,
                    one_machine=self.config.engine == "local",
                    owner=owner,
                    team=team,
                    codes=codes,
                    known=self.outcome,
                    payer_of=self.scheduler.purse.payer_of,
                )
            except InputError as wrong:  # of the first job, which is as wrong as all others
                field = f"job.{wrong.field.partition('].')[2]}"
                raise InputError(field, wrong.value, wrong.expected, wrong.problem) from None
            return sweeping.begin(draft, spec, jobs, draws)

        def made(sweep: Sweep) -> dict[str, object]:
            return {"jobs": len(sweep.jobs), "class": sweep.job_class, "name": sweep.name}

        return self._ask(audited(by, "sweep", apply, subject=lambda sweep: sweep.id, made=made))

    def stop_sweep(self, name: str, *, by: Caller | None = None) -> "Future[Sweep]":
        def apply(draft: Draft) -> Sweep:
            return sweeping.stop(draft, name, self.sweeps.get(name))

        return self._ask(audited(by, "sweep stop", apply, subject=name))
