"""Secrets of a launch come from the ledger of access, or the launch says that it cannot run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from services.executor.agents.secrets import Secrets, without_separation
from shared.bus.hosting.access import AccessFollower
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.agents import Launch
from shared.contracts.failures import Failure
from shared.contracts.secrets import SecretDeleted, SecretStored
from shared.secrets.secret_box import seal_value
from shared.secrets.secret_keys import FILE, SecretKeys, make_keys
from tests.services.executor.core.agents.history import POOL, allocation, running


def launch(**env: str) -> Launch:
    return running().state.workers[allocation(1)].launch.model_copy(update={"env": env})


class Site(NamedTuple):
    """The ledger of access, what follows it, and the file of keys."""

    ledger: LedgerWriter
    access: AccessFollower
    keys: Path

    def store(self, name: str, value: str, version: int, tenant: str = "ada") -> SecretStored:
        sealed = seal_value(SecretKeys(self.keys), tenant, name, version, value)
        event = SecretStored(
            tenant=tenant, name=name, version=version, sealed=sealed, set_by="key:a", set_at=1
        )
        self.ledger.write([event])
        return event

    def secrets(self, folder: Path | None = None) -> Secrets:
        return Secrets(self.access, self.keys, folder)

    async def failure(self, secret: str, folder: Path | None = None) -> Failure:
        resolved = await self.secrets(folder).resolve(launch(KEY=f"secret://{secret}", A="x"))
        assert resolved.failure is not None and resolved.env == resolved.secrets == {}
        return resolved.failure


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    broker = MemoryBroker()
    ledger = LedgerWriter(broker, "access")
    ledger.write([POOL])
    access = AccessFollower(lambda: MemoryLog(broker))
    following = asyncio.create_task(access.run())
    await access.caught_up.wait()
    make_keys(tmp_path / FILE)
    yield Site(ledger, access, tmp_path / FILE)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_values_are_beside_the_variables_that_name_them(site: Site) -> None:
    site.store("token", "mine", 1)
    site.store("token", "his", 1, "bob")
    resolved = await site.secrets().resolve(launch(KEY="secret://token", A="1"))
    assert resolved.env == {"KEY": "secret://token", "A": "1"}
    assert (resolved.secrets, resolved.failure) == ({"KEY": "mine"}, None)
    before = without_separation(resolved)
    assert (before.env, before.secrets) == ({"KEY": "mine", "A": "1"}, {})
    plain = launch(A="1")
    assert await site.secrets().resolve(plain) is plain


async def test_the_latest_value_counts_and_one_of_a_moment_ago(site: Site) -> None:
    for version, value in enumerate(("one", "two", "three"), 1):
        site.store("token", value, version)
        await site.access.catch_up()
        assert (await site.secrets().resolve(launch(K="secret://token"))).secrets == {"K": value}
    site.store("fresh", "new", 4)
    assert (await site.secrets().resolve(launch(K="secret://fresh"))).secrets == {"K": "new"}


@pytest.mark.parametrize("name", ["absent", "token", "../bob/token", "", "bob/token"])
async def test_a_secret_that_the_tenant_lacks_fails_the_job_for_good(site: Site, name: str) -> None:
    site.store("token", "his", 1, "bob")
    failure = await site.failure(name)
    assert (failure.reason, failure.permanent) == ("secret_missing", True)
    assert failure.detail.startswith(f"env.KEY: {name!r}; ")


async def test_a_deleted_secret_fails_the_job_for_good(site: Site) -> None:
    site.store("token", "mine", 1)
    site.ledger.write([SecretDeleted(tenant="ada", name="token")])
    await site.access.catch_up()
    failure = await site.failure("token")
    assert (failure.reason, failure.permanent) == ("secret_missing", True)
    detail = "env.KEY: 'token'; tenant ada has no such secret, or not any more"
    assert failure.detail == detail


@pytest.mark.parametrize("moved", [{"tenant": "ada"}, {"name": "token"}, {"version": 9}])
async def test_a_ciphertext_that_was_put_elsewhere_is_no_value(
    site: Site, moved: dict[str, object]
) -> None:
    original = site.store("other", "sesame", 1, "ada" if "version" in moved else "bob")
    place = {"tenant": "ada", "name": "other", **moved}
    site.ledger.write([original.model_copy(update=place)])
    await site.access.catch_up()
    failure = await site.failure(str(place["name"]))
    assert (failure.reason, failure.permanent) == ("secret_forged", True)
    assert "sesame" not in failure.detail


async def test_without_its_key_a_secret_is_tried_again(site: Site) -> None:
    key_id = site.store("token", "mine", 1).sealed.key.key_id
    await site.access.catch_up()
    site.keys.unlink()
    failure = await site.failure("token")
    assert (failure.reason, failure.permanent) == ("secret_unreadable", False)
    assert str(site.keys) not in failure.detail
    make_keys(site.keys)
    failure = await site.failure("token")
    assert (failure.reason, failure.permanent) == ("secret_unreadable", False)
    assert key_id in failure.detail
    resolved = await Secrets(site.access, None, None).resolve(launch(K="secret://token"))
    assert resolved.failure is not None and "BERTH_SECRET_KEYS" in resolved.failure.detail


async def test_while_access_cannot_be_read_nothing_is_missing_for_good(site: Site) -> None:
    away = AccessFollower(lambda: MemoryLog(MemoryBroker()))
    resolved = await Secrets(away, site.keys, None).resolve(launch(K="secret://token"))
    assert resolved.failure is not None
    assert (resolved.failure.reason, resolved.failure.permanent) == ("secret_unreadable", False)


async def test_all_names_of_a_launch_wait_for_access_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = list[int]()

    async def slow() -> bool:
        waits.append(1)
        return False

    site.store("token", "mine", 1)
    await site.access.catch_up()
    monkeypatch.setattr(site.access, "catch_up", slow)
    names = {f"K{number}": f"secret://absent-{number}" for number in range(128)}
    resolved = await site.secrets().resolve(launch(K="secret://token", **names))
    assert len(waits) == 1
    assert resolved.failure is not None and resolved.failure.reason == "secret_unreadable"
    assert (await site.secrets().resolve(launch(K="secret://token"))).secrets == {"K": "mine"}
    assert len(waits) == 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    for tenant, text in (("ada", "file\n"), ("bob", "his")):
        (folder / tenant).mkdir(parents=True)
        (folder / tenant / "token").write_text(text)
    (folder / "ada" / "nul").write_text("a\0b")
    (folder / "ada" / "bytes").write_bytes(b"\xff")
    (folder / "ada" / "loop").symlink_to("loop")
    (folder / "ada" / "folder").mkdir()
    return folder


async def test_files_of_an_earlier_release_count_until_the_ledger_has_the_name(
    site: Site, folder: Path
) -> None:
    secrets = site.secrets(folder)
    assert (await secrets.resolve(launch(K="secret://token"))).secrets == {"K": "file"}
    site.store("token", "mine", 1)
    await site.access.catch_up()
    assert (await secrets.resolve(launch(K="secret://token"))).secrets == {"K": "mine"}


@pytest.mark.parametrize("name", ["absent", "../bob/token", "folder", "nul", "bytes", "loop"])
async def test_a_file_that_is_none_fails_the_job(site: Site, folder: Path, name: str) -> None:
    failure = await site.failure(name, folder)
    reasons = {"nul": "secret_unusable", "bytes": "secret_unusable", "loop": "secret_unreadable"}
    assert failure.reason == reasons.get(name, "secret_missing")
    assert failure.permanent == (name != "loop") and str(folder) not in failure.detail
