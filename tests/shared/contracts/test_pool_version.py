"""A version stands for the settings, however an event spells them."""

from __future__ import annotations

import json

from shared.contracts.pool_version import version_of
from shared.contracts.pools import ConfigurePool, PoolConfigured

POOL = PoolConfigured(pool="gpu", partition=1, backends=("agent",), reserve_after_s=9.0)


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
