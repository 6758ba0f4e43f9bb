"""Fields of `boa.yaml` that say what jobs see of the service, and as whom they run."""

from boa.formats.containers import either, list_of, mapping_of, object_of
from boa.formats.parts import CLASS, FILE, MAX_NAME
from boa.formats.shapes import Field, needed, text, then, whole
from boa.model.service import RunAs

MAX_PASSED = 200
_PASSED = text(
    "the name of a variable, or its beginning and a * (PREFIX_*); none of the service's own, "
    "BOA_…, which never pass",
    pattern=r"^(?!BOA_)[A-Za-z_][A-Za-z0-9_]*\*?$",
    most=MAX_NAME,
    words="names, or beginnings of names such as `PREFIX_*`",
)
_EXPECTED = "a user of this machine: its name or its number"
_NAMED = text(
    _EXPECTED,
    pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@-]*\$?$",
    most=MAX_NAME,
    words="a user's name",
)
_NUMBERED = then(whole(least=0, most=2**32 - 2), str)
_USER = either({str: _NAMED, int: _NUMBERED, float: _NUMBERED}, expected=_EXPECTED)


def _run_as(default: str, teams: dict[str, str] | None = None) -> RunAs:
    return RunAs(default=default, teams=teams or {})


_TEAMS = object_of(
    needed("default", _USER, "Who jobs run as whose team is not named."),
    Field(
        "teams",
        mapping_of(CLASS, _USER, called="TEAM", expected="a mapping from teams to users"),
        "Who jobs of a team run as.",
        otherwise="none",
    ),
    make=_run_as,
    words="`{default: USER, teams: {TEAM: USER}}`",
)
_ALL_NAMED, _ALL_NUMBERED = then(_NAMED, _run_as), then(_NUMBERED, _run_as)

ISOLATION = (
    Field(
        "pass_env",
        list_of(
            _PASSED,
            least=0,
            most=MAX_PASSED,
            expected=f"a list of up to {MAX_PASSED} names of variables, such as [WANDB_MODE, S3_*]",
        ),
        "Variables of the service's own environment that jobs see, beside the usual ones.",
        otherwise="the usual ones alone",
        example=["WANDB_MODE", "S3_*"],
    ),
    Field(
        "run_as",
        either(
            {str: _ALL_NAMED, int: _ALL_NUMBERED, float: _ALL_NUMBERED, dict: _TEAMS},
            expected=f"{_EXPECTED}, or {{default: USER, teams: {{TEAM: USER}}}}",
        ),
        "Who jobs run as, on engine `local`. Needs root.",
        otherwise="the service's own user",
        example={"default": "nobody", "teams": {"vision": "alice"}},
    ),
    Field(
        "secret_key_file",
        FILE,
        "The key that secrets are encrypted with, for its owner alone (0600); made if it is not "
        "there.",
        otherwise="`$BOA_SECRET_KEY_FILE`, or `secret.key` in the data folder",
    ),
)
