from __future__ import annotations

import pickle

from shared.contracts.bookkeeping import TenantNoted
from tests.harness.decider import given
from tests.services.admission.core.cases import ADMISSION, pool, submit, when


def test_a_lane_without_a_pool_has_no_name() -> None:
    assert given(ADMISSION).pool_name == ""
    assert pool().pool_name == "main"


def test_only_a_known_tenant_that_is_not_retired_is_active() -> None:
    state = pool(TenantNoted(tenant="beta", active=False))
    assert [state.is_active(tenant) for tenant in ("acme", "beta", "ghost")] == [True, False, False]


def test_a_snapshot_equals_the_state() -> None:
    state = pool()
    when(state, submit("j1"), submit("a", size=3))
    assert pickle.loads(pickle.dumps(state)) == state
