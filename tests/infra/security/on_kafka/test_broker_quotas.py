"""The broker has the quota of tenants' users as that of all users; own and site users have none."""

from __future__ import annotations

import time

import pytest
from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import AlterClientQuotasRequest

from infra.broker import topics
from infra.security import acls
from infra.security.broker_quotas import (
    DEFAULT,
    NO_BOUND,
    QuotaNotApplied,
    TenantQuota,
    apply_quotas,
    quotas,
    send,
)
from infra.security.kafka_users import new_password
from infra.security.rights import TENANT
from tests.infra.security.on_kafka.guarded_broker import MARKS, TENANTS, UNPRIVILEGED, Guarded
from tests.patience import PATIENCE_S

pytestmark = MARKS
QUOTA = TenantQuota(4e6, 20.0)
MONITOR = "site.monitor"
OWN = {"consumer_byte_rate": 5e6}


def settled(admin: KafkaAdminClient, user: str | None, expected: dict[str, float]) -> bool:
    """Return whether a user has these quotas, after a while if need be."""
    until = time.monotonic() + PATIENCE_S
    while quotas(admin).get(user, {}) != expected and time.monotonic() < until:
        time.sleep(0.05)
    return quotas(admin).get(user, {}) == expected


def test_tenants_have_the_quota_and_neither_berths_nor_the_sites_users(guarded: Guarded) -> None:
    admin = topics.connect(guarded.root)
    try:
        acls.set_passwords(admin, {MONITOR: new_password()})
        change = ([("user", MONITOR)], [(name, value, False) for name, value in OWN.items()])
        send(admin, AlterClientQuotasRequest(entries=[change], validate_only=False))
        assert settled(admin, MONITOR, OWN)
        apply_quotas(admin, QUOTA)
        assert settled(admin, DEFAULT, QUOTA._asdict())
        unbound = dict.fromkeys(TenantQuota._fields, NO_BOUND)
        for user in ("gateway", "placement", "operator", "restore", "broker", UNPRIVILEGED):
            assert settled(admin, user, unbound), user
        assert quotas(admin)[MONITOR] == OWN, "the site bounds its users itself"
        assert TENANT + TENANTS[0] not in quotas(admin), "the default holds"
    finally:
        apply_quotas(admin, TenantQuota(NO_BOUND, NO_BOUND))
        acls.remove_users(admin, [MONITOR])
        admin.close()


def test_a_quota_that_the_broker_rejects_is_an_error(guarded: Guarded) -> None:
    admin = topics.connect(guarded.root)
    try:
        with pytest.raises(QuotaNotApplied, match="quota: "):
            apply_quotas(admin, TenantQuota(-1.0, 20.0))
    finally:
        apply_quotas(admin, TenantQuota(NO_BOUND, NO_BOUND))
        admin.close()
