"""Fields of `boa.yaml` for Ray and for AWS."""

from typing import Any

from boa.formats.containers import list_of, mapping_of, object_of
from boa.formats.parts import LINE, MAX_NAME
from boa.formats.shapes import FLAG, Field, Shape, choice, needed, nullable, text
from boa.model.provider_settings import RAY_NODES, AwsMachine, AwsSettings, RaySettings

MAX_SETUP = 8000
"""Characters: all that a node is told when it boots must fit into 16 KB."""
MAX_TAGS = 40
"""AWS allows 50 on everything; ours are among them."""
TAG = r"^(?!boa:|aws:)[A-Za-z0-9+=.,_:@-]{1,128}$"
"""Pattern of tag names that AWS lets the node itself read."""
_HOST_PORT = r"[^\s:/]+:[0-9]{1,5}"


def _id(prefix: str) -> Shape[str]:
    expected = f"an id such as {prefix}0abc" if prefix else "a name"
    pattern = rf"^{prefix}[A-Za-z0-9_.-]+$"
    return text(
        expected, pattern=pattern, most=MAX_NAME, words=f"`{prefix}…`" if prefix else "text"
    )


def _ids(prefix: str, least: int = 1) -> Shape[tuple[str, ...]]:
    example = f" of ids such as {prefix}0abc" if prefix else ""
    expected = f"a list{example}{', not empty' if least else ''}"
    words = f"list of `{prefix}…`" if prefix else "list of names"
    return list_of(_id(prefix), least=least, expected=expected, words=words)


def _aws(endpoint: str | None = None, **values: Any) -> AwsSettings:
    return AwsSettings(endpoint=endpoint or None, **values)


RAY = object_of(
    Field(
        "address",
        text(
            "auto, or HOST:PORT of the head (its GCS port)",
            pattern=f"^(auto|{_HOST_PORT})$",
            most=MAX_NAME,
            words="`auto` or `HOST:PORT`",
        ),
        "Where its head is; `auto`: the one this machine belongs to.",
        default=RaySettings().address,
    ),
    Field(
        "nodes",
        choice(RAY_NODES),
        "`autoscaler`: Ray's own brings and takes nodes, as we ask. `fixed`: those that are there.",
        default=RaySettings().nodes,
    ),
    make=RaySettings,
)
_MACHINE = object_of(
    needed("instance_types", _ids(""), "Tried in this order; all with the same GPUs."),
    Field("spot", FLAG, "Cheaper, and may be taken away with two minutes' notice.", default=False),
    make=AwsMachine,
)
_TAGS = mapping_of(
    text("letters, digits and + - = . , _ : @, beginning with neither boa: nor aws:", pattern=TAG),
    LINE,
    called="NAME",
    least=0,
    most=MAX_TAGS,
    expected=f"names and values, up to {MAX_TAGS}",
    words=f"mapping from up to {MAX_TAGS} names to text",
)
AWS = object_of(
    needed("region", LINE, "Such as us-east-1."),
    needed("image", _id("ami-"), "The AMI that nodes boot."),
    needed("subnets", _ids("subnet-"), "One for each zone that nodes may be in."),
    needed(
        "machines",
        mapping_of(LINE, _MACHINE, called="GPU"),
        "What every one of the `gpu_types` is on AWS.",
    ),
    needed(
        "head",
        text(
            "HOST:PORT of the Ray head that nodes join",
            pattern=f"^{_HOST_PORT}$",
            most=MAX_NAME,
            words="`HOST:PORT`",
        ),
        "The Ray head that nodes join.",
    ),
    Field("security_groups", _ids("sg-", 0), "Of the nodes.", otherwise="the subnet's own"),
    Field("key_name", LINE, "To log in with.", otherwise="none"),
    Field("instance_profile", LINE, "What nodes may do: its name.", otherwise="none"),
    Field(
        "setup",
        text(
            f"shell lines, up to {MAX_SETUP} characters",
            pattern=r"^[^\x00]*$",
            most=MAX_SETUP,
            words=f"text of up to {MAX_SETUP:,} characters",
        ),
        "Shell lines that run on a node before it joins.",
        otherwise="none",
    ),
    Field("tags", _TAGS, "Beside our own, on everything.", otherwise="none"),
    Field(
        "endpoint",
        nullable(text("a URL", pattern="", most=MAX_NAME, fits=str.isprintable, words="URL")),
        "Where the API is, if not at AWS: an emulator.",
        otherwise="AWS",
    ),
    make=_aws,
)
