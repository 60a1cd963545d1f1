"""Costs of a request to its tenant, in units of service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Cost(Protocol):
    """Units of service of a prompt and the first so many output tokens."""

    def of(self, prompt_tokens: int, output_tokens: float) -> float: ...


@dataclass(frozen=True, slots=True)
class LinearCost:
    """`w_p` per prompt token and `w_q` per output token (VTC: 1 and 2)."""

    prompt_price: float = 1.0
    output_price: float = 2.0

    def of(self, prompt_tokens: int, output_tokens: float) -> float:
        return self.prompt_price * prompt_tokens + self.output_price * output_tokens


@dataclass(frozen=True, slots=True)
class ProfiledCost:
    """The cost function `h(p, q)` that the VTC artifact fitted to an A10G with a 7B model."""

    def of(self, prompt_tokens: int, output_tokens: float) -> float:
        p, q = prompt_tokens, output_tokens
        return 0.21001891 * p + 0.10075395 * q + 0.0039868 * p * q + 0.00324733 * q * q + 1.14601454


LINEAR = LinearCost()
