"""The broker has the quota of tenants' users as that of all users; Berth's own have no bound."""

from __future__ import annotations

import time

from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import DescribeClientQuotasRequest

from infra.broker import topics
from infra.security.broker_quotas import NO_BOUND, TenantQuota, apply_quotas
from infra.security.rights import TENANT
from tests.infra.security.on_kafka.guarded_broker import MARKS, TENANTS, Guarded
from tests.patience import PATIENCE_S

pytestmark = MARKS
QUOTA = TenantQuota(4e6, 20.0)
EXACT, DEFAULT_MATCH = 0, 1


def quotas(admin: KafkaAdminClient, user: str | None) -> dict[str, float]:
    """Return the quotas that a user has of its own; None is the default of all users."""
    request = DescribeClientQuotasRequest(
        components=[("user", DEFAULT_MATCH if user is None else EXACT, user)], strict=True
    )
    answer = admin._manager.run(admin._manager.send, request)
    return {value.key: value.value for entry in answer.entries or () for value in entry.values}


def test_all_users_but_the_installations_own_have_the_quota(guarded: Guarded) -> None:
    admin = topics.connect(guarded.root)
    try:
        apply_quotas(admin, QUOTA)
        until = time.monotonic() + PATIENCE_S
        while quotas(admin, None) != QUOTA._asdict() and time.monotonic() < until:
            time.sleep(0.05)
        assert quotas(admin, None) == QUOTA._asdict()
        for user in ("gateway", "placement", "operator", "restore"):
            assert set(quotas(admin, user).values()) == {NO_BOUND}, user
        assert quotas(admin, TENANT + TENANTS[0]) == {}, "the default holds"
    finally:
        apply_quotas(admin, TenantQuota(NO_BOUND, NO_BOUND))
        admin.close()
