"""Places of open streams: of the gateway, each tenant, and each user or key: some are left."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection
from typing import NamedTuple
from weakref import WeakValueDictionary

from services.gateway.core.key_bounds import user_of
from services.gateway.responses.problem import ApiError
from shared.contracts.registry import Bearer

RETRY_AFTER = {"Retry-After": "10"}
PAST_AT_ONCE = 2
"""Streams of one user, or key without one, that read the past at the same time: each of them reads
the whole topic from where it begins, and would take the time of the others' streams."""
OPERATORS = ""
"""Those without a tenant, who share places as a tenant does."""


class StreamLimits(NamedTuple):
    """Most open streams of the gateway, of one tenant, and of one user, or key without one."""

    total: int
    of_tenant: int
    of_key: int


class StreamPlaces:
    """Counts open streams; a place is taken before the response begins and given back once.

    A place is kept for each tenant with no stream, and for operators: the first stream of each
    finds one, however many the others open. Half of all places are kept at most.
    """

    def __init__(self, limits: StreamLimits, tenants: Callable[[], Collection[str]]) -> None:
        self._limits = limits
        self._tenants = tenants
        self._by_key: Counter[str] = Counter()
        self._by_tenant: Counter[str] = Counter()
        self._turns = WeakValueDictionary[str, asyncio.Semaphore]()

    @property
    def taken(self) -> int:
        """Streams that are open."""
        return self._by_key.total()

    def of_tenant(self, tenant: str) -> int:
        """Open streams of a tenant at this gateway."""
        return self._by_tenant[tenant]

    def take(self, bearer: Bearer) -> Callable[[], None]:
        """Take a place and return what gives it back.

        Raises ApiError 429 at the bound of the key or tenant, 503 where no place is left for it.
        """
        key, tenant, limits = _name_of(bearer), bearer.tenant or OPERATORS, self._limits
        if self._by_key[key] >= limits.of_key:
            raise _too_many(key, limits.of_key, "BERTH_KEY_STREAMS")
        if tenant != OPERATORS and self._by_tenant[tenant] >= limits.of_tenant:
            raise _too_many(f"tenant {tenant}", limits.of_tenant, "BERTH_TENANT_STREAMS")
        kept = self._kept() if self._by_tenant[tenant] else 0
        if self.taken + kept >= limits.total:
            rest = f", {kept} of them kept for tenants with none" if kept else ""
            detail = f"limit of {limits.total} open streams reached (BERTH_STREAMS){rest}; retry"
            raise ApiError(503, "too_many_streams", f"{detail} later", headers=RETRY_AFTER)
        counted = [(self._by_key, key), (self._by_tenant, tenant)]
        for counter, name in counted:
            counter[name] += 1

        def give_back() -> None:
            while counted:
                counter, name = counted.pop()
                counter[name] -= 1
                if not counter[name]:
                    del counter[name]

        return give_back

    def turns_of(self, bearer: Bearer) -> asyncio.Semaphore:
        """Return what a stream of this bearer holds while it reads events of the past."""
        return self._turns.setdefault(_name_of(bearer), asyncio.Semaphore(PAST_AT_ONCE))

    def _kept(self) -> int:
        """Return the number of places for first streams: of tenants and operators without one."""
        without = sum(name not in self._by_tenant for name in (OPERATORS, *self._tenants()))
        return min(without, self._limits.total // 2)


def _name_of(bearer: Bearer) -> str:
    """Return whom a stream counts for: all keys and tokens of a user share its places."""
    user = user_of(bearer)
    return bearer.principal if user is None else f"user {user} of {bearer.tenant or OPERATORS}"


def _too_many(of: str, limit: int, setting: str) -> ApiError:
    detail = (
        f"{of}: {limit} streams are open; at most {limit} are allowed at once; close one, or an"
        f" operator raises {setting}"
    )
    return ApiError(429, "too_many_streams", detail, headers=RETRY_AFTER)
