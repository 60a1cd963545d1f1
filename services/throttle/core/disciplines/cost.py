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


LINEAR = LinearCost()
