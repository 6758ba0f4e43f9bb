"""Tokens: which are made, and which are too easy to guess to be taken."""

import secrets

import pytest

from boa.api.tokens import checked_token, new_token, weakness_of
from boa.errors import InputError

WEAK = {
    "short": "s3cret-token",
    "fifteen": "k3Jd92lqPz7xWm1",
    "one letter": "a" * 64,
    "two letters": "ab" * 32,
    "a word twice": "passwordpassword",
    "counting": "0123456789abcdef",
    "the alphabet": "abcdefghijklmnopqrstuvwxyz",
    "few letters": "aaaaaaaaaaaaaaab",
}


@pytest.mark.parametrize("token", WEAK.values(), ids=WEAK.keys())
def test_a_weak_token_is_refused_with_how_to_make_one_and_is_not_repeated(token: str) -> None:
    with pytest.raises(InputError, match="openssl rand -hex 32") as refused:
        checked_token(token, "BOA_TOKEN")
    assert token not in str(refused.value)


def test_random_ones_are_taken_however_they_are_made() -> None:
    for _ in range(200):
        made = [
            new_token(),
            secrets.token_hex(16),
            secrets.token_urlsafe(12),
            secrets.token_hex(32),
        ]
        assert [weakness_of(token) for token in made] == [None] * len(made)
