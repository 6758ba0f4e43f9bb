"""Fingerprint of what a job runs, so that other code is told from the same code again.

It is made of the scripts that a command names, as they are when the job is submitted: files that
end in .py or .sh, or begin with #!, and `python -m MODULE` where that is in the job's folder; or
of the package that it runs in; and of the names of its environment and its image. It does not see
what they import, installed packages, data, options, or files on other machines: a change there is
one that somebody has to tell (`boa class retry`).
"""

import hashlib
import os
import shlex
from collections.abc import Iterator, Sequence

from boa.formats.job import SHELL
from boa.model.job import JobSpec
from boa.plain_file import read_plain

MOST_BYTES = 1024**2
"""Bytes of the longest script that is read."""
MOST_SCRIPTS = 20
_SCRIPTS = (".py", ".sh")


def fingerprint(spec: JobSpec) -> str:
    """Fingerprint of all scripts that can be read; empty if there is none."""
    named = "\0".join((spec.package, spec.environment, spec.image))
    found = hashlib.sha256(named.strip("\0").encode("utf-8", "surrogatepass"))
    some = bool(named.strip("\0"))
    for name, content in _scripts(spec):
        some = True
        found.update(f"{len(name)} {name} {len(content)} ".encode("utf-8", "surrogatepass"))
        found.update(content)
    return found.hexdigest()[:16] if some else ""


def _scripts(spec: JobSpec) -> Iterator[tuple[str, bytes]]:
    for name in _named(_words(spec.run))[:MOST_SCRIPTS]:
        if spec.package or (not spec.workdir and not os.path.isabs(name)):
            continue  # in a folder that is yet to be made
        try:
            content = read_plain(os.path.join(spec.workdir, name), most=MOST_BYTES + 1, follow=True)
        except (OSError, ValueError):
            continue
        is_script = name.endswith(_SCRIPTS) or content.startswith(b"#!")
        if is_script and len(content) <= MOST_BYTES:
            yield name, content


def _named(words: Sequence[str]) -> list[str]:
    """Words that may be files."""
    found = []
    for before, word in zip(("", *words), words, strict=False):
        if before == "-m":
            module = word.replace(".", "/")
            found += [f"{module}.py", f"{module}/__main__.py"]
        elif word and not word.startswith("-"):
            found.append(word)
    return found


def _words(run: Sequence[str]) -> Sequence[str]:
    if tuple(run[:-1]) != SHELL:
        return run
    try:
        return shlex.split(run[-1])
    except ValueError:  # an open quote: the shell itself will say so
        return run[-1].split()
