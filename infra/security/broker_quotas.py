"""Quotas of users on the broker: bytes and request time of each tenant's user.

The quota of tenants is the default of all users, so that a user is bound from its creation. Berth's
own users have no bound, nor have those of the site, except by quotas that the site gave them.
Kafka delays what exceeds a quota; it refuses nothing. The embedded broker has no quotas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import AlterClientQuotasRequest, DescribeClientQuotasRequest

from infra.security.acls import scram_users
from infra.security.rights import RESTORE, SITE, SUPERUSER, TRIM, users

DEFAULT: str | None = None
"""Its quotas hold for all users without quotas of their own."""
NO_BOUND = 1e15
UNBOUND = (*users(), RESTORE, TRIM, SUPERUSER)
EACH_USER = 2
"""Selects the quotas of every user, and the default, in a request for them."""


class QuotaNotApplied(SystemExit):
    """The broker rejected a quota."""


class TenantQuota(NamedTuple):
    """Quota of a tenant's user on each broker."""

    producer_byte_rate: float
    """Bytes per second that it may write."""
    request_percentage: float
    """Percent of the time of one thread of the broker that its requests may use."""


def apply_quotas(admin: KafkaAdminClient, quota: TenantQuota) -> None:
    """Bind all users but Berth's own and the site's, also those created later. Idempotent.

    A user of the site that is created later is bound until the next call.
    """
    bound = quotas(admin)
    site = (user for user in scram_users(admin) if user.startswith(SITE) and user not in bound)
    entries = {DEFAULT: quota._asdict()}
    entries |= {user: dict.fromkeys(TenantQuota._fields, NO_BOUND) for user in (*UNBOUND, *site)}
    request = AlterClientQuotasRequest(
        entries=[_entry(user, values) for user, values in entries.items()], validate_only=False
    )
    for entry in send(admin, request).entries:
        if entry.error_code:
            raise QuotaNotApplied(f"quota: {entry.error_code}: {entry.error_message}")


def quotas(admin: KafkaAdminClient) -> dict[str | None, dict[str, float]]:
    """Return the quotas that users have of their own, and those of `DEFAULT`."""
    request = DescribeClientQuotasRequest(components=[("user", EACH_USER, None)], strict=True)
    return {
        entry.entity[0].entity_name: {value.key: value.value for value in entry.values}
        for entry in send(admin, request).entries or ()
    }


def send(admin: KafkaAdminClient, request: object) -> Any:
    """Return the answer to a request for which the client has no method."""
    return admin._manager.run(admin._manager.send, request)


def _entry(user: str | None, values: Mapping[str, float]) -> tuple[object, ...]:
    return ([("user", user)], [(name, value, False) for name, value in values.items()])
