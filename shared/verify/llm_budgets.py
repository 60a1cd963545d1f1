"""Use and reservations of the holders of one budget of an LLM endpoint."""

from __future__ import annotations

from dataclasses import dataclass, field

from shared.projections.ledger_events import Payload
from shared.verify.llm_meters import BudgetMeter, HalfLifeMeter, WindowMeter

REMEMBERED = 10_000
"""Holders that a budget remembers, by tenant; the sums of one with more are not checked."""

Prices = tuple[float, float, float]
"""Units per request, per prompt token and per output token."""
MILLION = 1e6


def money_prices(settings: Payload) -> Prices:
    """Return the money for a request, a prompt token and an output token of an endpoint."""
    prompt, output = (
        settings.get(name, 0.0) / MILLION for name in ("prompt_price", "output_price")
    )
    return settings.get("request_price", 0.0), prompt, output


@dataclass(slots=True)
class HeldRequest:
    """A request that holds its price in every budget of its endpoint."""

    queued: Payload
    prompt_tokens: int
    queued_at: int
    started_at: int = 0
    made_tokens: int = 0

    @property
    def remaining_tokens(self) -> int:
        return max(int(self.queued["max_output_tokens"]) - self.made_tokens, 0)


@dataclass(slots=True)
class BudgetUse:
    """Use of one holder of a budget, and units that its open requests hold."""

    meter: BudgetMeter
    held: float = 0.0


@dataclass(slots=True)
class EndpointBudget:
    """One budget of an endpoint; limits may be changed, what was used stays."""

    settings: Payload
    prices: Prices
    uses: dict[tuple[str, str], BudgetUse] = field(default_factory=dict)
    by_owner: dict[str, int] = field(default_factory=dict)
    """Number of holders by owner: a tenant, or the endpoint itself as `""`."""

    @property
    def kind(self) -> tuple[object, ...]:
        """Return the settings that must be equal for the use of one to count for another."""
        names = ("holder", "unit", "memory", "period_s")
        forever = self.settings["memory"] == "forever"
        return tuple(self.settings[name] for name in (names[:3] if forever else names))

    def use(self, request: HeldRequest) -> BudgetUse:
        key = self.holder_of(request)
        known = self.uses.get(key)
        if known is None:
            known = self.uses[key] = BudgetUse(self._meter())
            self.by_owner[key[0]] = self.by_owner.get(key[0], 0) + 1
        return known

    def is_checked(self, request: HeldRequest) -> bool:
        owner = self.holder_of(request)[0]
        return self.by_owner.get(owner, 0) <= REMEMBERED and len(self.by_owner) <= REMEMBERED

    def holder_of(self, request: HeldRequest) -> tuple[str, str]:
        """Return owner and holder: users and applications are those of a tenant."""
        queued, holder = request.queued, self.settings["holder"]
        if holder == "model":
            return "", queued.get("model") or queued["endpoint"]
        if holder == "tenant":
            return "", queued["tenant"]
        default = "default" if holder == "application" else ""
        return queued["tenant"], queued.get(holder, default)

    def queue(self, request: HeldRequest, at: int) -> float:
        """Hold the price of a request; return by how much the limit is passed with it."""
        use, (per_request, per_prompt, per_output) = self.use(request), self.prices
        tokens = request.queued["max_output_tokens"]
        use.held += per_prompt * request.queued["prompt_tokens"] + per_output * tokens
        if per_request:
            use.meter.add(per_request, at)
        return use.meter.total(at) + use.held - float(self.settings["limit"])

    def withdraw(self, request: HeldRequest) -> None:
        _, per_prompt, per_output = self.prices
        tokens = request.queued["max_output_tokens"]
        self._release(request, per_prompt * request.prompt_tokens + per_output * tokens)

    def start(self, request: HeldRequest, at: int) -> None:
        self._settle(request, self.prices[1] * request.prompt_tokens, at)

    def make(self, request: HeldRequest, tokens: int, at: int) -> None:
        per_output = self.prices[2]
        self._release(request, per_output * min(tokens, request.remaining_tokens))
        self._add(request, per_output * tokens, at)

    def end(self, request: HeldRequest, prompt_tokens: int, at: int) -> None:
        """Count the prompt as the engine did, and release what was not made."""
        units = self.prices[1] * (prompt_tokens - request.prompt_tokens)
        if units < 0:
            self.use(request).meter.refund(-units, request.started_at)
        self._add(request, max(units, 0.0), at)
        self._release(request, self.prices[2] * request.remaining_tokens)

    def hold_again(self, request: HeldRequest) -> None:
        """Hold what an open request may still use, by the present prices."""
        _, per_prompt, per_output = self.prices
        waits = 0 if request.started_at else request.prompt_tokens
        self.use(request).held += per_prompt * waits + per_output * request.remaining_tokens

    def count_again(self, request: HeldRequest) -> None:
        """Count an open request in a budget that is newer than it."""
        self.queue(request, request.queued_at)
        if request.started_at:
            made_tokens, request.made_tokens = request.made_tokens, 0
            self.start(request, request.started_at)
            self.make(request, made_tokens, request.started_at)
            request.made_tokens = made_tokens

    def _settle(self, request: HeldRequest, units: float, at: int) -> None:
        self._release(request, units)
        self._add(request, units, at)

    def _release(self, request: HeldRequest, units: float) -> None:
        use = self.use(request)
        use.held = max(use.held - units, 0.0)

    def _add(self, request: HeldRequest, units: float, at: int) -> None:
        if units:
            self.use(request).meter.add(units, at)

    def _meter(self) -> BudgetMeter:
        period_ms = 1000.0 * self.settings["period_s"]
        if self.settings["memory"] == "window":
            return WindowMeter(period_ms)
        return HalfLifeMeter(None if self.settings["memory"] == "forever" else period_ms)
