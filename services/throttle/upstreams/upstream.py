"""An upstream as the pool knows it: settings, health, breaker, load; pure but for its secret."""

from __future__ import annotations

from dataclasses import dataclass

from yarl import URL

from services.throttle.upstreams.breaker import Breaker
from services.throttle.upstreams.headers import engine_headers, is_printable
from services.throttle.upstreams.metrics_text import UNKNOWN, EngineFigures
from services.throttle.upstreams.posting import PostTarget
from services.throttle.upstreams.request_errors import REST_S, RequestFailure
from shared.contracts.endpoints import Upstream

OVERLOADED_KV_RATIO = 0.9


@dataclass(frozen=True, slots=True)
class UpstreamState:
    """An upstream for figures and the API; `reason` says why it is not available."""

    name: str
    available: bool
    reason: str
    in_flight: int
    waiting: int | None
    kv_ratio: float | None


class PooledUpstream:
    """One upstream; its attributes are those of a `BalanceTarget`."""

    def __init__(self, settings: Upstream) -> None:
        self.name = settings.name
        self.in_flight = 0
        self.foreign = 0
        self.turn = 0.0
        self.breaker = Breaker()
        self.figures = UNKNOWN
        self.health_reason = ""
        """Why the latest probes make it unavailable; empty if they do not."""
        self.headers = engine_headers("")
        self._secret_reason = ""
        self._failure_reason = ""
        self._urls: dict[str, URL] = {}
        self._targets: dict[URL, PostTarget] = {}
        self.configure(settings)

    def configure(self, settings: Upstream) -> None:
        """Take settings of the same engine: see `is_same_engine`."""
        self.settings = settings
        self.weight = settings.weight
        self.drained = settings.drained
        self.max_requests = settings.max_requests

    def is_same_engine(self, settings: Upstream) -> bool:
        """Return whether the settings name the engine about which this object has learned."""
        mine = self.settings
        return (mine.url, mine.model, mine.key) == (settings.url, settings.model, settings.key)

    def url(self, path: str) -> URL:
        """Return the address of a path. Raises ValueError if the settings have no valid one."""
        url = self._urls.get(path)
        if url is None:
            url = self._urls[path] = URL(self.settings.url.rstrip("/") + path)
        return url

    def target(self, path: str) -> PostTarget:
        """Return the target of requests to a path. Raises ValueError without a valid address."""
        url = self.url(path)
        target = self._targets.get(url)
        if target is None:
            target = self._targets[url] = PostTarget(url)
        return target

    def set_secret(self, secret: str | None) -> None:
        """Take the API key; without one that can be sent it is not available."""
        if self.settings.key is None:
            return
        text = (secret or "").strip()
        self._secret_reason = "" if text else f"no secret {self.settings.key}"
        if not is_printable(text):
            self._secret_reason = f"secret {self.settings.key} is not printable ASCII"
        else:
            self.headers = engine_headers(text)

    def set_figures(self, figures: EngineFigures) -> None:
        """Take the load that the engine reported; what is not from here is foreign."""
        self.figures = figures
        reported = (figures.running or 0) + (figures.waiting or 0)
        self.foreign = max(reported - self.in_flight, 0)

    def reason(self, now: float) -> str:
        """Return why it gets no request now; empty if it may get one."""
        if self.drained:
            return "drained"
        if reason := self._secret_reason or self.health_reason:
            return reason
        if not self.breaker.allows(now):
            return self._failure_reason or "not available"
        return ""

    def is_pausing(self, now: float) -> bool:
        """Return whether it gets no request only because it requested a pause."""
        is_well = not (self.drained or self._secret_reason or self.health_reason)
        return is_well and self.breaker.is_resting(now)

    def room(self, now: float) -> int:
        """Return how many more requests it takes now; half open it takes one."""
        if self.reason(now):
            return 0
        room = max(self.max_requests - self.in_flight, 0)
        return room if self.breaker.phase(now) == "closed" else min(room, 1)

    def capacity(self, now: float) -> int:
        """Return the requests in flight and those that it takes besides them."""
        return self.in_flight + self.room(now)

    def is_overloaded(self, now: float) -> bool:
        """Return whether the engine reports that more requests would not be served faster."""
        figures = self.figures
        is_full = (figures.kv_ratio or 0.0) > OVERLOADED_KV_RATIO
        return (is_full or (figures.waiting or 0) > 0) and not self.reason(now)

    def fail(self, failure: RequestFailure, now: float, *, is_trial: bool) -> None:
        """Take the verdict of a failure; of a suspect one only if this was the trial."""
        if failure.verdict != "answered":
            self._failure_reason = failure.reason
        match failure.verdict:
            case "busy":
                self.breaker.abandon(is_trial=is_trial)
                pause_s = REST_S if failure.retry_after_s is None else failure.retry_after_s
                self.breaker.rest(now, pause_s)
            case "down" | "failed":
                at_once = failure.verdict == "down"
                self.breaker.fail(now, is_trial=is_trial, at_once=at_once)
            case "suspect" if is_trial:
                self.breaker.fail(now, is_trial=True)
            case _:
                self.breaker.abandon(is_trial=is_trial)

    def confirm(self, now: float) -> None:
        """Count a suspect failure, as another upstream has served the same request."""
        self.breaker.fail(now, is_trial=False)

    def state(self, now: float) -> UpstreamState:
        reason, figures = self.reason(now), self.figures
        return UpstreamState(
            self.name, not reason, reason, self.in_flight, figures.waiting, figures.kv_ratio
        )
