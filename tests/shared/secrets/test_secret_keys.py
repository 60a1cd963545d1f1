"""Keys in a file: made once, the first encrypts, all decrypt, and errors repeat no content."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.contracts.secrets import WrappedKey
from shared.secrets.secret_keys import (
    Forged,
    KeyMissing,
    KeysUnusable,
    SecretKeys,
    add_key,
    make_keys,
    read_keys,
)

LINE = "k1 " + "QUFB" * 10 + "QUE="


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "keys"
    make_keys(path)
    return path


def test_a_file_is_made_once_for_its_owner_alone(path: Path) -> None:
    before = path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert not make_keys(path) and path.read_text() == before
    assert [len(key) for key in read_keys(path).values()] == [32]
    assert [other.name for other in path.parent.iterdir()] == ["keys"]


def test_a_data_key_comes_back_in_its_context_alone(path: Path) -> None:
    keys = SecretKeys(path)
    wrapped = keys.wrap(b"d" * 32, b"here")
    assert keys.unwrap(wrapped, b"here") == b"d" * 32 and wrapped.key_id == keys.first()
    with pytest.raises(Forged):
        keys.unwrap(wrapped, b"there")
    changed = wrapped.data[:-2] + ("AA" if wrapped.data[-2:] != "AA" else "BB")
    for data in (changed, "AA", "A"):
        with pytest.raises(Forged):
            keys.unwrap(WrappedKey(key_id=wrapped.key_id, data=data), b"here")


def test_a_new_key_encrypts_and_the_old_one_decrypts_until_it_is_removed(path: Path) -> None:
    keys = SecretKeys(path)
    old = keys.wrap(b"d" * 32, b"")
    path.chmod(0o640)
    new_id = add_key(path)
    assert path.stat().st_mode & 0o777 == 0o640
    new = keys.wrap(b"d" * 32, b"")
    assert (new.key_id, keys.first()) == (new_id, new_id) and old.key_id != new_id
    assert keys.unwrap(old, b"") == keys.unwrap(new, b"") == b"d" * 32
    path.write_text(path.read_text().splitlines()[0] + "\n")
    with pytest.raises(KeyMissing, match=old.key_id):
        keys.unwrap(old, b"")


@pytest.mark.parametrize(
    "text", ["", "\n", "k1", "k1 short", LINE + "\n" + LINE, f"{LINE}x", "\xe4"]
)
def test_a_file_that_is_none_of_keys_is_refused_without_its_content(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "keys"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(KeysUnusable) as raised:
        SecretKeys(path).wrap(b"", b"")
    assert str(path) in str(raised.value) and "QUFB" not in str(raised.value)
    with pytest.raises(KeysUnusable):
        add_key(path)


def test_a_line_of_an_id_and_a_key_is_one(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"\n{LINE}\n")
    assert list(read_keys(tmp_path / "keys")) == ["k1"]
    with pytest.raises(KeysUnusable, match="No such file"):
        read_keys(tmp_path / "gone")
