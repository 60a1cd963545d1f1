"""A client of the API leaves it in peace for as long as it requires."""

from __future__ import annotations

import pytest

from services.executor.engines.engine import EngineAway
from services.executor.engines.kubernetes.api import LONGEST_PAUSE_S, ApiRefusal
from tests.services.executor.engines.kubernetes.fake_api import PATH, FakeApi, serving


@pytest.mark.parametrize("status", [429, 503])
async def test_nothing_is_sent_before_the_pause_is_over_that_the_api_requires(status: int) -> None:
    fake = FakeApi()
    fake.status, fake.headers = status, {"Retry-After": "3600"}
    async with serving(fake) as api:
        with pytest.raises(EngineAway, match=f"{status}: why"):
            await api.read(PATH)
        fake.status = 200
        with pytest.raises(EngineAway, match="Retry-After") as paused:
            await api.read(PATH)
        assert f"for {LONGEST_PAUSE_S:g}" in str(paused.value) or "for 59" in str(paused.value)
        with pytest.raises(EngineAway, match="Retry-After"):
            async with api.stream(PATH, {}):
                pass
    assert len(fake.queries) == 1


async def test_a_refusal_or_a_pause_of_no_length_stops_nothing() -> None:
    fake = FakeApi()
    fake.status, fake.headers = 403, {"Retry-After": "3600"}
    async with serving(fake) as api:
        with pytest.raises(ApiRefusal, match="why"):
            await api.read(PATH)
        fake.status, fake.headers = 429, {"Retry-After": "soon"}
        with pytest.raises(EngineAway):
            await api.read(PATH)
        fake.status = 200
        assert (await api.read(PATH))["items"] == []
