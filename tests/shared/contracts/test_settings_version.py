"""A version stands for the settings, however an event spells them."""

from __future__ import annotations

import json

from shared.contracts.endpoints import ConfigureEndpoint, EndpointConfigured, Upstream
from shared.contracts.pools import ConfigurePool, PoolConfigured
from shared.contracts.settings_version import version_of

POOL = PoolConfigured(pool="gpu", partition=1, backends=("agent",), reserve_after_s=9.0)
CHAT = EndpointConfigured(
    endpoint="chat", partition=1, upstreams=(Upstream(name="a", url="http://a:1"),)
)


def test_equal_settings_have_one_version_and_others_another() -> None:
    as_row = json.loads(POOL.model_dump_json(exclude_none=True))
    assert version_of(PoolConfigured.model_validate(as_row)) == version_of(POOL)
    sparse = {"pool": "gpu", "partition": 1, "backends": ["agent"], "reserve_after_s": 9}
    older = PoolConfigured.model_validate({**sparse, "solver": POOL.solver})
    assert version_of(older) == version_of(POOL)
    assert version_of(POOL.model_copy(update={"rank_ms": 5})) != version_of(POOL)


def test_every_version_may_be_named_by_a_change() -> None:
    for pool in (None, POOL):
        assert ConfigurePool(pool="gpu", if_version=version_of(pool)).if_version
    assert version_of(None) == "absent"


def test_equal_settings_of_an_endpoint_have_one_version_and_others_another() -> None:
    spelled = json.loads(CHAT.model_dump_json())
    sparse = json.loads(CHAT.model_dump_json(exclude_defaults=True))
    assert spelled != sparse
    same = {version_of(EndpointConfigured.model_validate(row)) for row in (spelled, sparse)}
    assert same == {version_of(CHAT)}
    assert version_of(CHAT.model_copy(update={"slack": 5.0})) != version_of(CHAT)


def test_every_version_may_be_named_by_a_change_of_an_endpoint() -> None:
    for endpoint in (None, CHAT):
        version = version_of(endpoint)
        assert ConfigureEndpoint(endpoint="chat", if_version=version).if_version == version
    assert version_of(None) == "absent"
