"""A ciphertext is that of one tenant, name and version."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.contracts.secrets import SecretStored
from shared.secrets.secret_box import open_value, rewrap, seal_value
from shared.secrets.secret_keys import Forged, SecretKeys, add_key, make_keys

VALUE = "s3same\nwith two lines and an ä"


@pytest.fixture
def keys(tmp_path: Path) -> SecretKeys:
    make_keys(tmp_path / "keys")
    return SecretKeys(tmp_path / "keys")


def stored(keys: SecretKeys) -> SecretStored:
    sealed = seal_value(keys, "ada", "db", 3, VALUE)
    return SecretStored(tenant="ada", name="db", version=3, sealed=sealed, set_by="key:a", set_at=1)


def test_a_value_comes_back_and_is_not_in_its_record(keys: SecretKeys) -> None:
    secret = stored(keys)
    assert open_value(keys, secret) == VALUE
    assert "s3same" not in secret.model_dump_json()
    assert secret.sealed.data != stored(keys).sealed.data


@pytest.mark.parametrize("other", [{"tenant": "bob"}, {"name": "api"}, {"version": 4}])
def test_a_ciphertext_that_is_put_elsewhere_does_not_decrypt(
    keys: SecretKeys, other: dict[str, object]
) -> None:
    moved = stored(keys).model_copy(update=other)
    with pytest.raises(Forged):
        open_value(keys, moved)
    with pytest.raises(Forged):
        rewrap(keys, moved)


def test_a_data_key_of_another_secret_opens_nothing(keys: SecretKeys) -> None:
    one, other = stored(keys), stored(keys)
    mixed = one.sealed.model_copy(update={"key": other.sealed.key})
    with pytest.raises(Forged):
        open_value(keys, one.model_copy(update={"sealed": mixed}))


def test_under_a_new_key_the_value_stays(keys: SecretKeys, tmp_path: Path) -> None:
    secret = stored(keys)
    add_key(tmp_path / "keys")
    sealed = secret.sealed.model_copy(update={"key": rewrap(keys, secret)})
    (tmp_path / "keys").write_text((tmp_path / "keys").read_text().splitlines()[0])
    assert open_value(keys, secret.model_copy(update={"sealed": sealed})) == VALUE
