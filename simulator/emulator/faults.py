"""Faults of an upstream, for tests of what stands before it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

Fault = Literal["error", "hang", "reset", "cut", "wrong-usage", "malformed", "slow"]
FAULTS: tuple[Fault, ...] = get_args(Fault)
HEADER = "x-berth-fault"
EXPLAINED: Mapping[Fault, str] = {
    "error": "status 500",
    "hang": "no answer, not even headers, until the client leaves",
    "reset": "the connection is reset, of a stream after half of the answer",
    "cut": "a stream ends without [DONE], as if it were complete",
    "wrong-usage": "the usage counts ten times the tokens",
    "malformed": "a chunk, or the answer, is not JSON",
    "slow": "a second passes before each write",
}


class InvalidFaults(ValueError):
    """A description of faults is invalid; the text names the rule."""


@dataclass(frozen=True)
class FaultRates:
    """The frequency of each fault: a part of the requests."""

    rates: Mapping[Fault, float]
    by_header: bool = False
    """Whether a request may choose its fault with the header `x-berth-fault`."""

    def draw(self, source: random.Random, header: str | None) -> Fault | None:
        """Return the fault of a request, or None. Raises InvalidFaults for an unknown header."""
        if self.by_header and header is not None:
            return known_fault(header)
        point = source.random()
        for fault, rate in self.rates.items():
            point -= rate
            if point < 0:
                return fault
        return None


def known_fault(name: str) -> Fault:
    for fault in FAULTS:
        if fault == name:
            return fault
    raise InvalidFaults(f"{name[:40]!r} is no fault; faults are {', '.join(FAULTS)}")


def parse_rates(text: str) -> Mapping[Fault, float]:
    """Return the rates of `error=0.01,hang=0.001`. Raises InvalidFaults."""
    rates: dict[Fault, float] = {}
    for item in filter(None, text.split(",")):
        name, _, number = item.partition("=")
        fault = known_fault(name.strip())
        try:
            rate = float(number)
        except ValueError:
            raise InvalidFaults(f"{fault}: {number!r} is no number") from None
        if not 0 <= rate <= 1:
            raise InvalidFaults(f"{fault}: {number} is not in 0..1")
        rates[fault] = rate
    if sum(rates.values()) > 1:
        raise InvalidFaults("the rates add up to more than 1")
    return rates
