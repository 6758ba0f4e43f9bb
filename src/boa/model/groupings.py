"""Groupings: ways to list what was spent, as who asks names them."""

from typing import Literal, TypeAlias, get_args

What: TypeAlias = Literal["day", "class", "job", "team", "user", "payer", "tag"]
"""`payer`: the innermost part of the budget that pays; `tag`: the value of a tag of some kind."""
WHAT: tuple[What, ...] = get_args(What)
TAG = "tag:"
"""Before the kind of the tag."""
PLAIN = WHAT[:-1]
"""Those that are asked for by their names alone."""
EXPECTED = f"one of {', '.join(PLAIN)} or {TAG}KIND, such as {TAG}project"
