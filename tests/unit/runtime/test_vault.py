"""Secrets as they are kept: sealed, with a key of their own."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from boa.errors import BoaError, InputError
from boa.model.access import NOBODY, Caller
from boa.model.job import JobSpec, SecretUse
from boa.runtime.vault import MAX_SECRETS, NoSuchSecret, NotReady, NotTheirs, Secret, Vault

VALUE = "hunter2-and-more"
ALICE = Caller(name="alice", role="member", team="vision")
BOB = Caller(name="bob", role="member", team="vision")
EVE = Caller(name="eve", role="member")


def vault_in(folder: Path, *secrets: Secret) -> Vault:
    meta = {f"secret/{secret.name}": secret.document() for secret in secrets}
    return Vault(folder / "keys" / "secret.key", {"clock": [1, 2], "secret/GONE": None, **meta})


def spec(*uses: str) -> JobSpec:
    found = tuple(SecretUse(name, env or name) for name, _, env in (u.partition("=") for u in uses))
    return JobSpec(job_class="a", run=("true",), secrets=found)


def test_a_value_comes_back_from_what_is_stored_and_only_with_its_key(tmp_path: Path) -> None:
    sealed = vault_in(tmp_path).seal("KEY", VALUE, by=ALICE, now=5.0)
    assert VALUE not in json.dumps(sealed.document())
    again = vault_in(tmp_path, sealed)
    assert again.values(spec("KEY", "KEY=OTHER")) == {"KEY": VALUE, "OTHER": VALUE}
    assert [(s.name, s.set_at, s.set_by) for s in again.secrets()] == [("KEY", 5.0, "alice")]
    (tmp_path / "keys" / "secret.key").unlink()
    with pytest.raises(NotReady, match=r"secret KEY cannot be decrypted: .*secret\.key is gone"):
        vault_in(tmp_path, sealed).values(spec("KEY"))
    vault_in(tmp_path).seal("NEW", VALUE, by=NOBODY, now=6.0)  # under a new key
    with pytest.raises(NotReady, match="not the key that it was set with"):
        vault_in(tmp_path, sealed).values(spec("KEY"))


def test_who_writes_the_database_cannot_give_a_secret_the_value_of_another(tmp_path: Path) -> None:
    sealed = vault_in(tmp_path).seal("KEY", VALUE, by=NOBODY, now=0.0)
    moved = Secret(name="PRINTED", sealed=sealed.sealed, set_at=0.0)
    with pytest.raises(NotReady):
        vault_in(tmp_path, moved).values(spec("PRINTED"))


def test_the_key_is_for_its_owner_alone_and_made_when_it_is_needed(tmp_path: Path) -> None:
    vault = vault_in(tmp_path)
    key = tmp_path / "keys" / "secret.key"
    assert (vault.secrets(), key.exists()) == ([], False)
    vault.seal("KEY", VALUE, by=NOBODY, now=0.0)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    key.chmod(0o640)
    with pytest.raises(InputError, match=r"secret\.key is open to others \(0640\); .* chmod 600"):
        vault_in(tmp_path).seal("KEY", VALUE, by=NOBODY, now=0.0)
    key.chmod(0o600)
    key.write_text("no key")
    with pytest.raises(InputError, match=r"secret_key_file: .*secret\.key is no key"):
        vault_in(tmp_path).seal("KEY", VALUE, by=NOBODY, now=0.0)


@pytest.mark.parametrize("value", ["", "a\0b", "x" * (10 * 1024 + 1), "\ud800hidden-value"])
def test_a_value_that_no_variable_can_hold_is_refused_without_being_quoted(
    tmp_path: Path, value: str
) -> None:
    with pytest.raises(InputError, match=r"^value: ") as wrong:
        vault_in(tmp_path).seal("KEY", value, by=NOBODY, now=0.0)
    assert "hidden" not in str(wrong.value)
    assert "xxx" not in str(wrong.value)


@pytest.mark.parametrize("name", ["", "1A", "A-B", "a b", "../x", "A" * 201])
def test_a_name_that_no_variable_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"^name: "):
        vault_in(tmp_path).seal(name, VALUE, by=NOBODY, now=0.0)


def test_there_are_not_more_secrets_than_anybody_needs(tmp_path: Path) -> None:
    vault = vault_in(tmp_path)
    for number in range(MAX_SECRETS):
        vault.adopt(Secret(name=f"S{number}", sealed="", set_at=0.0))
    with pytest.raises(InputError, match="at most 1,000 secrets"):
        vault.seal("ONE_MORE", VALUE, by=NOBODY, now=0.0)
    vault.seal("S1", VALUE, by=NOBODY, now=0.0)


def test_a_job_that_names_a_secret_that_is_not_set_is_refused_by_its_name(tmp_path: Path) -> None:
    vault = vault_in(tmp_path)
    vault.adopt(vault.seal("KEY", VALUE, by=NOBODY, now=0.0))
    vault.check(spec("KEY"), NOBODY)
    with pytest.raises(InputError, match=r"^secrets\[1\]: got 'NOPE'; .* boa secret set NOPE"):
        vault.check(spec("KEY", "NOPE"), NOBODY)
    vault.drop("KEY")
    with pytest.raises(NoSuchSecret):
        vault.get("KEY")
    with pytest.raises(NotReady, match="secret KEY is not set any more"):
        vault.values(spec("KEY"))


def test_a_text_is_masked_by_the_secrets_of_its_own_job(tmp_path: Path) -> None:
    vault = vault_in(tmp_path)
    vault.adopt(vault.seal("KEY", VALUE, by=NOBODY, now=0.0))
    assert vault.masked(f"killed {VALUE}", spec("KEY")) == f"killed {'*' * len(VALUE)}"
    assert vault.masked(f"killed {VALUE}", spec()) == f"killed {VALUE}"
    assert vault.masked(f"killed {VALUE}", spec("GONE")) == f"killed {VALUE}"


def test_errors_of_the_key_are_told_to_users_as_such(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "keys").write_text("a file where the folder should be")
    with pytest.raises(BoaError, match="secret_key_file"):
        vault_in(tmp_path).seal("KEY", VALUE, by=NOBODY, now=0.0)


def test_a_member_s_secret_is_for_jobs_of_hers_and_her_team_s_and_for_nobody_else_to_change(
    tmp_path: Path,
) -> None:
    vault = vault_in(tmp_path)
    vault.adopt(vault.seal("KEY", VALUE, by=ALICE, now=0.0))
    for allowed in (ALICE, BOB, NOBODY):
        vault.check(spec("KEY"), allowed)
    with pytest.raises(
        InputError, match=r"^jobs\[2\]\.secrets\[0\]: KEY is somebody else's; .* boa secret list"
    ):
        vault.check(spec("KEY"), EVE, "jobs[2].")
    with pytest.raises(NotTheirs, match="secret KEY is somebody else's"):
        vault.seal("KEY", "another value", by=EVE, now=1.0)
    with pytest.raises(NotTheirs):
        vault.changeable("KEY", EVE)
    assert vault.changeable("KEY", BOB).set_by == "alice"


def test_what_an_admin_sets_is_for_all_jobs_and_for_admins_to_change(tmp_path: Path) -> None:
    vault = vault_in(tmp_path)
    sealed = vault.seal("KEY", VALUE, by=Caller(name="admin"), now=0.0)
    again = vault_in(tmp_path, sealed)
    again.check(spec("KEY"), EVE)
    with pytest.raises(NotTheirs):
        again.changeable("KEY", EVE)
