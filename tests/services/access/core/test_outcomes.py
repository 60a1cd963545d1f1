"""Denials name the version to read again, the limit that is reached, and the unknown tenant."""

from __future__ import annotations

from services.access.core.outcomes import Denial, deny_lane, deny_tenant, deny_version
from shared.contracts.pools import PoolConfigured
from shared.contracts.settings_version import version_of

MAIN = PoolConfigured(partition=0, pool="main")


def test_a_change_without_a_condition_or_on_this_version_is_not_denied() -> None:
    assert deny_version("pool", "main", MAIN, None) is None
    assert deny_version("pool", "main", MAIN, version_of(MAIN)) is None
    assert deny_version("pool", "main", None, "absent") is None


def test_a_change_on_another_version_is_denied_with_the_present_one() -> None:
    denial = deny_version("pool", "main", MAIN, "absent")
    assert denial is not None and denial.reason == "version_conflict"
    assert version_of(MAIN) in denial.detail


def test_the_lanes_of_deleted_pools_are_named_where_none_is_left() -> None:
    detail = "pool: 'main': pool limit (1) reached; deleted ones count, and can be added again: old"
    assert deny_lane("pool", "main", 1, ["old"]) == Denial("main", "no_lane_left", detail)


def test_an_unknown_tenant_is_denied_with_the_remedy() -> None:
    denial = deny_tenant("k1", "ada")
    assert (denial.of, denial.reason) == ("k1", "unknown_tenant")
    assert "`berth tenants add`" in denial.detail
