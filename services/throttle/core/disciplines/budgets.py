"""Budgets of a tenant, user, application or model: in requests, tokens or money."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from services.throttle.core.disciplines.bounded_table import BoundedTable
from services.throttle.core.disciplines.meters import HalfLife, Memory, Meter
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.seam import EngineLoad, Guard, Throttled
from services.throttle.core.disciplines.spent import SpentBudget

Holder = Literal["tenant", "user", "application", "model"]

NEGLIGIBLE = 1e-9
"""Part of a limit that is forgotten: what 30 half-lives leave of a budget that was used up."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Units per request, per prompt token and per output token; money in any one currency."""

    request: float = 0.0
    prompt_token: float = 0.0
    output_token: float = 0.0


@dataclass(frozen=True, slots=True)
class PriceList:
    """Prices by model, and those of the other models; `unit` names them in refusals."""

    unit: str
    default: Prices
    by_model: Mapping[str, Prices] = field(default_factory=dict)

    def of(self, request: ServedRequest) -> Prices:
        return self.by_model.get(request.model, self.default)


REQUESTS = PriceList("requests", Prices(request=1))
TOKENS = PriceList("tokens", Prices(prompt_token=1, output_token=1))


@dataclass(slots=True)
class Usage:
    """Units that one holder of a budget used, and those that its open requests may still use."""

    meter: Meter
    held: float = 0.0

    def settle(self, held: float, used: float, at: int) -> None:
        """Turn units that a request held into used ones."""
        self.release(held)
        self.meter.add(used, at)

    def release(self, held: float) -> None:
        self.held = max(self.held - held, 0.0)


@dataclass(slots=True)
class Budget(Guard):
    """Refuses a request that could pass a limit together with all requests that are open.

    A request holds its price with `max_output_tokens` from the time when it is queued; what is
    charged is used, what is left at its end is released.

    Bound: what the meter remembers never passes `limit`, however many requests run at once, where
    prompts are as long as reserved and no engine passes `max_output_tokens`. So a holder uses at
    most `limit` in any window of a `SlidingWindow`, and `limit (1 + t ln 2 / h)` in a time `t` of
    a `HalfLife` of `h`. A budget of users or applications remembers the last 10,000 of a
    tenant, and none that has nothing used or held.
    """

    limit: float
    prices: PriceList = TOKENS
    holder: Holder = "tenant"
    memory: Memory = HalfLife()
    usages: BoundedTable[str, BoundedTable[str, Usage]] = field(default_factory=BoundedTable)
    """By tenant and holder, so that no tenant makes the use of another forgotten."""

    def __post_init__(self) -> None:
        if not self.limit > 0:
            raise ValueError(f"limit: {self.limit} {self.prices.unit} is not above 0")

    def refusal(self, request: ServedRequest, load: EngineLoad, now: int) -> Throttled | None:
        price = self._price(request)
        usage = self._known_usage(request)
        used, held = (usage.meter.total(now), usage.held) if usage else (0.0, 0.0)
        excess = used + held + price - self.limit
        if excess <= 0:
            return None
        return SpentBudget(
            self.holder,
            self._key(request)[1],
            self.prices.unit,
            self.limit,
            self.memory,
            used,
            held,
            price,
            usage.meter.wait_ms(excess, now) if usage and used > excess else None,
        ).refusal

    def standing(self, request: ServedRequest, now: int) -> tuple[float, float, float]:
        """Return what is left for the holder, the limit, and the s until half of it is left.

        What open requests hold is not left.
        """
        usage = self._known_usage(request)
        if usage is None:
            return self.limit, self.limit, 0.0
        used = usage.meter.total(now)
        left = self.limit - used - usage.held
        missing = min(self.limit / 2 - left, used)
        wait_ms = usage.meter.wait_ms(missing, now) if missing > 0 else 0
        return left, self.limit, wait_ms / 1000

    def note_queued(self, request: ServedRequest) -> None:
        usage = self._usage(request)
        usage.held += self._price(request)
        request_price = self.prices.of(request).request
        if request_price:
            usage.settle(request_price, request_price, request.queued_at)

    def note_withdrawn(self, request: ServedRequest) -> None:
        prices = self.prices.of(request)
        self._usage(request).release(self._price(request) - prices.request)

    def note_started(self, request: ServedRequest, at: int) -> None:
        units = self.prices.of(request).prompt_token * request.prompt_tokens
        if units:
            self._usage(request).settle(units, units, at)

    def note_made(self, request: ServedRequest, tokens: int, at: int) -> None:
        price = self.prices.of(request).output_token
        if price:
            held = min(tokens, request.remaining_tokens) * price
            self._usage(request).settle(held, tokens * price, at)

    def note_prompt(self, request: ServedRequest, tokens: int, at: int) -> None:
        units = self.prices.of(request).prompt_token * tokens
        if units > 0:
            self._usage(request).meter.add(units, at)
        elif units:
            self._usage(request).meter.refund(-units, request.started_at)

    def note_finished(self, request: ServedRequest) -> None:
        price = self.prices.of(request).output_token
        if price:
            self._usage(request).release(request.remaining_tokens * price)

    def reprice(self, waiting: Iterable[ServedRequest], running: Iterable[ServedRequest]) -> None:
        """Hold what open requests may still use by the prices of now; what was used stays."""
        for own in self.usages.values.values():
            for usage in own.values.values():
                usage.held = 0.0
        for request in waiting:
            self._usage(request).held += self._price(request) - self.prices.of(request).request
        for request in running:
            price = self.prices.of(request).output_token
            self._usage(request).held += price * request.remaining_tokens

    def _price(self, request: ServedRequest) -> float:
        prices = self.prices.of(request)
        prompt = prices.prompt_token * request.prompt_tokens
        return prices.request + prompt + prices.output_token * request.max_output_tokens

    def _usage(self, request: ServedRequest) -> Usage:
        owner, holder = self._key(request)
        own = self.usages.touch(owner, BoundedTable)
        return own.touch(
            holder,
            lambda: Usage(self.memory.meter()),
            lambda usage: self._is_over(usage, request.queued_at),
        )

    def _is_over(self, usage: Usage, now: int) -> bool:
        return not usage.held and usage.meter.total(now) <= NEGLIGIBLE * self.limit

    def _known_usage(self, request: ServedRequest) -> Usage | None:
        owner, holder = self._key(request)
        own = self.usages.get(owner)
        return None if own is None else own.get(holder)

    def _key(self, request: ServedRequest) -> tuple[str, str]:
        """Return the tenant and the holder: users and applications are those of a tenant."""
        match self.holder:
            case "user":
                return request.tenant, request.user
            case "application":
                return request.tenant, request.application
            case "tenant":
                return "", request.tenant
            case "model":
                return "", request.model
