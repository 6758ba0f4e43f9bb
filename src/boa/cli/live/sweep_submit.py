"""Sweeps handed to the service: of a command, or of a job file, with or without one in it."""

from pathlib import Path
from typing import Any

from boa.cli import options
from boa.cli.console import emit_json
from boa.cli.live.service import connect, page_of, where_to_look
from boa.cli.live.term_options import with_terms
from boa.errors import BoaError, UsageError
from boa.model.job_spec import JobSpec


def has_sweep(word: str) -> bool:
    """Whether a job file has a sweep in it; whoever reads it next words what is wrong with it."""
    from boa.formats.files import read_document
    from boa.formats.sweep import is_sweep

    try:
        return is_sweep(read_document(Path(word)))
    except BoaError:
        return False


def submit_sweep(
    of: JobSpec | str, sweep: dict[str, Any], terms: dict[str, Any], *, json: bool
) -> None:
    """`sweep`: as a file has it, which goes before the file's own."""
    from boa.formats.job import job_document, load_job, read_job_spec
    from boa.formats.sweep import load_sweep, read_sweep

    if isinstance(of, JobSpec):
        job = of
    elif has_sweep(of):
        if sweep:
            raise UsageError(f"--sweep: {of} has a sweep of its own.")
        found = options.read(load_sweep, Path(of))
        job, sweep = found.job, _as_given(Path(of))
    else:
        job = options.read(load_job, Path(of))
    if terms:
        job = read_job_spec(with_terms(job_document(job), terms))
    spec = read_sweep({"job": job_document(job), **sweep})
    with connect() as client:
        made = client.submit_sweep(
            spec.job,
            sweep["parameters"],
            draws=spec.draws,
            seed=spec.seed,
            halving=sweep.get("halving"),
            name=spec.name or None,
        )
        page = page_of(client, made["id"])
    if json:
        emit_json({"sweep": made, **({"url": page} if page else {})})
        return
    print(made["id"])
    count = made["jobs"]
    jobs = "1 job" if count == 1 else f"{count:,} jobs"
    where_to_look(jobs, f"boa sweep show {made['id']}", f"boa sweep stop {made['id']}", page)


def _as_given(path: Path) -> dict[str, Any]:
    from boa.formats.files import read_document

    found: dict[str, Any] = read_document(path)["sweep"]
    return found
