"""What a pod's fields, secrets and config maps are for its containers."""

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

Object = Mapping[str, Any]
Find = Callable[[str, str], Object | None]
"""A `secrets` or `configmaps` of the pod's namespace, by kind and name."""
_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_VARIABLE = re.compile(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")


class NotThere(Exception):
    """A secret, a config map or a key that the pod needs."""


def field(pod: Object, path: str) -> str:
    """A `fieldRef`."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status", {})
    if keyed := _KEYED.fullmatch(path):
        return str(metadata.get(keyed[1], {}).get(keyed[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        pairs = metadata.get(path.removeprefix("metadata."), {})
        return "\n".join(f"{key}={json.dumps(pairs[key])}" for key in sorted(pairs))
    whose, _, name = path.partition(".")
    return str({"metadata": metadata, "spec": spec, "status": status}[whose].get(name, ""))


def data_of(found: Object) -> dict[str, bytes]:
    """The entries of a secret or config map."""
    if found["kind"] == "Secret":
        return {key: base64.b64decode(text) for key, text in found.get("data", {}).items()}
    texts = {key: text.encode() for key, text in found.get("data", {}).items()}
    binary = {key: base64.b64decode(text) for key, text in found.get("binaryData", {}).items()}
    return texts | binary


def wanted(find: Find, kind: str, name: str, optional: bool) -> dict[str, bytes]:
    """The same, by name.

    Raises:
        NotThere: and it is not optional.
    """
    found = find(kind, name)
    if found is None:
        if optional:
            return {}
        raise NotThere(f'{kind.removesuffix("s")} "{name}" not found')
    return data_of(found)


def environment(
    pod: Object, container: Object, find: Find, base: Mapping[str, str]
) -> dict[str, str]:
    """A container's variables.

    Raises:
        NotThere: one refers to what is not there.
    """
    env = dict(base)
    for entry in container.get("env", []):
        if "valueFrom" not in entry:
            env[entry["name"]] = expanded(entry.get("value", ""), env)
        elif (value := _from(pod, entry["valueFrom"], find)) is not None:
            env[entry["name"]] = value
    return env


def _from(pod: Object, source: Object, find: Find) -> str | None:
    if one := source.get("fieldRef"):
        return field(pod, one["fieldPath"])
    reference, kind = (
        ("secretKeyRef", "secrets")
        if "secretKeyRef" in source
        else ("configMapKeyRef", "configmaps")
    )
    one = source[reference]
    entries = wanted(find, kind, one["name"], one.get("optional", False))
    if one["key"] in entries:
        return entries[one["key"]].decode()
    if one.get("optional", False):
        return None
    raise NotThere(f"couldn't find key {one['key']} in {kind.removesuffix('s')} {one['name']}")


def expanded(text: str, env: Mapping[str, str]) -> str:
    """`$(NAME)` of a command or a value; unknown ones stay."""

    def one(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else env.get(found[1], found[0])

    return _VARIABLE.sub(one, text)
