"""A job's terms: how much it counts, what it starts after, what it may take and cost, and its
deadline."""

from typing import Any, get_args

from boa.formats.containers import either, list_of, mapping_of, object_of
from boa.formats.parts import CLASS, MAX_NAME
from boa.formats.shapes import (
    FLAG,
    BeyondSchema,
    Field,
    choice,
    needed,
    nullable,
    number,
    text,
    then,
    whole,
)
from boa.model.job_spec import After, JobSpec, On
from boa.model.priorities import PRIORITIES

MAX_AFTER = 1000
MAX_KEY = 200
LONGEST_S = 10 * 366 * 86_400.0
MOST_USD = 1e9
MAX_TAGS = 20
_WAITED = "the id of a job, such as 12, or of a sweep, such as s3"
_ID = text(_WAITED, pattern=r"^s?[1-9][0-9]{0,17}$", words="id of a job, or of a sweep")


def _each_once(after: tuple[After, ...]) -> tuple[After, ...]:
    """One job has one end: it cannot be waited for to end in two ways."""
    seen: set[str] = set()
    for place, one in enumerate(after):
        if one.job in seen:
            raise BeyondSchema(one.job, "each job once", at=f"[{place}]")
        seen.add(one.job)
    return after


_AFTERS = list_of(
    either(
        {
            int: then(whole(), lambda job: After(str(job))),
            str: then(_ID, After),
            dict: object_of(
                needed(
                    "job",
                    either({int: then(whole(), str), str: _ID}, expected=_WAITED),
                    "The id of a job or a sweep.",
                ),
                Field(
                    "on",
                    choice(get_args(On)),
                    "The end that is waited for.",
                    default="success",
                ),
                make=After,
                words="`{job: ID, on: success, failure or end}`",
            ),
        },
        expected=f"{_WAITED}; or {{job: ID, on: success, failure or end}}",
    ),
    least=0,
    most=MAX_AFTER,
    unique="each job once",
    expected=f"a list of up to {MAX_AFTER} ids of jobs or sweeps",
    words="list of ids of jobs or sweeps, or `{job: ID, on: success, failure or end}`",
)
_AFTER = then(_AFTERS, _each_once)


def _quoted(value: Any) -> str:
    hint = f' (a number goes in quotes: "{value}")' if type(value) in (int, float) else ""
    return f"1 to {MAX_NAME} printable characters{hint}"


_TAGS = mapping_of(
    CLASS,
    text(
        _quoted,
        pattern=r"^(?=.*\S)[^\x00-\x1f\x7f]+$",
        most=MAX_NAME,
        fits=str.isprintable,
        words=f"text of up to {MAX_NAME} characters",
    ),
    called="KIND",
    least=0,
    most=MAX_TAGS,
    expected=f"a mapping from up to {MAX_TAGS} kinds to what is charged",
    words=f"mapping from up to {MAX_TAGS} names to text",
)

TERMS = (
    Field(
        "priority",
        choice(PRIORITIES),
        "`urgent`: it counts several times as much as a normal job (`priorities` in boa.yaml). "
        "`background`: it runs on GPUs that are paid for and empty, and makes room at once.",
        otherwise="normal",
    ),
    Field(
        "weight",
        number(above=0),
        "How much a second of this job's JCT counts, as a number instead of a priority.",
        default=1.0,
    ),
    Field(
        "after",
        _AFTER,
        "Jobs or sweeps that must have ended first: well (`on: success`, which a plain id means), "
        "badly (`failure`), or at all (`end`).",
        otherwise="none",
        example=[12, {"job": 13, "on": "end"}],
    ),
    Field(
        "max_time_s",
        nullable(number(above=0, most=LONGEST_S)),
        "The most that its runs may take, all together; then it is stopped, with a checkpoint.",
        otherwise="no limit",
    ),
    Field(
        "max_cost",
        nullable(number(above=0, most=MOST_USD)),
        "The most that it may cost, in USD; it is stopped in time for a checkpoint.",
        otherwise="no limit",
        example=40,
    ),
    Field(
        "deadline_s",
        nullable(number(above=0, most=LONGEST_S)),
        "From its submission until it is to have ended: its weight rises as that takes it.",
        otherwise="none",
    ),
    Field(
        "may_wait_s",
        nullable(number(least=0, most=LONGEST_S)),
        "The most that its start may be put off, from its submission on, for hours of the calendar "
        "in which money buys more; 0: it starts as soon as it can.",
        otherwise="as the calendar says",
    ),
    Field(
        "preemptible",
        FLAG,
        "BOA may stop the job for other jobs although it has no checkpoint: its work then starts "
        "over. Jobs that checkpoint need not say so.",
        default=False,
    ),
    Field(
        "key",
        text(
            f"1 to {MAX_KEY} letters, digits and . _ : + - (a letter or digit first)",
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._:+-]*$",
            most=MAX_KEY,
            words=f"1 to {MAX_KEY} letters, digits and `. _ : + -`",
        ),
        "Submitting it again under the same key makes no second job.",
        otherwise="none",
        example="nightly-2026-11-16",
    ),
    Field(
        "tags",
        _TAGS,
        "Whom or what it is charged to: `boa cost --by tag:project` adds up by them.",
        otherwise="none",
        example={"project": "cats", "cost_center": "4711"},
    ),
)


def terms_document(spec: JobSpec) -> dict[str, Any]:
    """Those that there are."""
    counts = {"weight": spec.weight} if spec.priority == "normal" else {"priority": spec.priority}
    said = {
        "after": [_named(one) for one in spec.after] or None,
        "max_time_s": spec.max_time_s,
        "max_cost": spec.max_cost,
        "deadline_s": spec.deadline_s,
        "may_wait_s": spec.may_wait_s,
        "preemptible": spec.preemptible or None,
        "key": spec.key or None,
        "tags": dict(spec.tags) or None,
    }
    return {**counts, **{name: value for name, value in said.items() if value is not None}}


def _named(one: After) -> Any:
    return one.job if one.on == "success" else {"job": one.job, "on": one.on}
