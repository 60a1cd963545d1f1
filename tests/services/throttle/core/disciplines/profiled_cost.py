"""A cost that is not linear, for tests of the disciplines' bounds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProfiledCost:
    """The cost function `h(p, q)` that the VTC artifact fitted to an A10G with a 7B model."""

    def of(self, prompt_tokens: int, output_tokens: float) -> float:
        p, q = prompt_tokens, output_tokens
        return 0.21001891 * p + 0.10075395 * q + 0.0039868 * p * q + 0.00324733 * q * q + 1.14601454
