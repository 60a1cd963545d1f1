"""The gateway makes ciphertext of values, and the same ciphertext of the value that is stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.gateway import sealing
from services.gateway.responses.problem import ApiError
from services.gateway.sealing import Sealing
from shared.contracts.registry import AccessView
from shared.contracts.secrets import SecretRewrapped, SecretStored, StoreSecret
from shared.secrets.secret_box import open_value
from shared.secrets.secret_keys import FILE, SecretKeys, add_key, make_keys


@pytest.fixture
def path(tmp_path: Path) -> Path:
    make_keys(tmp_path / FILE)
    return tmp_path / FILE


def fold(view: AccessView, command: StoreSecret) -> SecretStored:
    event = SecretStored(**dict(command), set_at=1)
    view.apply(event)
    return event


async def test_a_value_gets_the_next_version_of_its_tenant(path: Path) -> None:
    view, seals = AccessView(), Sealing(path)
    first = fold(view, await seals.store(view, "ada", "db", "one", "key:a"))
    other = fold(view, await seals.store(view, "ada", "api", "two", "key:a"))
    again = fold(view, await seals.store(view, "ada", "db", "three", "key:a"))
    assert [event.version for event in (first, other, again)] == [1, 2, 3]
    assert open_value(SecretKeys(path), again) == "three"
    same = await seals.store(view, "ada", "db", "three", "key:b")
    assert (same.version, same.sealed) == (3, again.sealed)


async def test_a_secret_under_a_lost_key_is_replaced(path: Path) -> None:
    view, seals = AccessView(), Sealing(path)
    fold(view, await seals.store(view, "ada", "db", "one", "key:a"))
    path.unlink()
    make_keys(path)
    assert (await seals.rewraps(view))[1:] == ([], ["ada/db"], 0)
    assert (await seals.store(view, "ada", "db", "one", "key:a")).version == 2


async def test_secrets_get_the_first_key_some_at_a_time(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "MAX_REWRAPPED", 2)
    view, seals = AccessView(), Sealing(path)
    for name in ("a", "b", "c"):
        fold(view, await seals.store(view, "ada", name, name * 3, "key:a"))
    assert (await seals.rewraps(view)).commands == []
    first = add_key(path)
    rewraps = await seals.rewraps(view)
    assert (rewraps.key_id, len(rewraps.commands), rewraps.left) == (first, 2, 1)
    for command in rewraps.commands:
        view.apply(SecretRewrapped(**dict(command)))
    assert [command.name for command in (await seals.rewraps(view)).commands] == ["c"]
    path.write_text(path.read_text().splitlines()[0])
    [a, b, _] = view.secrets
    assert (open_value(SecretKeys(path), a), open_value(SecretKeys(path), b)) == ("aaa", "bbb")


async def test_without_usable_keys_nothing_is_stored(tmp_path: Path) -> None:
    for seals, reason in (
        (Sealing(None), "no_secret_keys"),
        (Sealing(tmp_path / "gone"), "secret_keys_unusable"),
    ):
        with pytest.raises(ApiError) as raised:
            await seals.store(AccessView(), "ada", "db", "one", "key:a")
        assert (raised.value.status, raised.value.reason) == (503, reason)
