"""Use and reservations of the holders of one budget of an LLM endpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from shared.projections.ledger_events import Payload
from shared.verify.llm_meters import BudgetMeter, HalfLifeMeter, WindowMeter

REMEMBERED = 9_000
"""Holders of a tenant that are checked. The service remembers 10,000, each a little longer: where
there are more, it may have forgotten one that is counted here, and none of them is checked."""
NEGLIGIBLE = 1e-9
"""Part of a limit that is forgotten, as the service does."""
FORGOTTEN = 2
"""Old holders that a new one makes forgotten at most."""

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
    uses: dict[str, dict[str, BudgetUse]] = field(default_factory=dict)
    """By owner and holder; the holders of an owner in the order in which they came last."""
    unchecked: set[str] = field(default_factory=set)
    """Owners of which the service may have forgotten holders."""

    @property
    def kind(self) -> tuple[object, ...]:
        """Return the settings that must be equal for the use of one to count for another."""
        names = ("holder", "unit", "memory", "period_s")
        forever = self.settings["memory"] == "forever"
        return tuple(self.settings[name] for name in (names[:3] if forever else names))

    def use(self, request: HeldRequest) -> BudgetUse:
        """Return the use of a holder; one that is counted nowhere if its owner is not checked."""
        owner, holder = self.holder_of(request)
        if owner in self.unchecked:
            return BudgetUse(self._meter())
        own = self.uses.setdefault(owner, {})
        if holder not in own:
            own[holder] = BudgetUse(self._meter())
        return own[holder]

    def is_checked(self, request: HeldRequest) -> bool:
        owner = self.holder_of(request)[0]
        return owner not in self.unchecked and len(self.uses) <= REMEMBERED

    def _remember(self, request: HeldRequest, at: int) -> None:
        """Make the holder the last of its owner, and forget the first ones if nothing is left."""
        owner, holder = self.holder_of(request)
        own = self.uses.get(owner, {})
        if holder in own:
            own[holder] = own.pop(holder)
            return
        for old in [*islice(own, FORGOTTEN)]:
            if own[old].held or own[old].meter.total(at) > NEGLIGIBLE * self.settings["limit"]:
                break
            del own[old]
        if len(own) >= REMEMBERED:
            self.unchecked.add(owner)
            del self.uses[owner]

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
        self._remember(request, at)
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
