"""Flags of `berth bench policies`."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.parts.policies.rules import FAMILY


@dataclass(frozen=True, slots=True)
class PoliciesOptions:
    """The fields are the flags of the benchmark, with their defaults."""

    trace: str = ""
    quick: bool = False
    model: str = FAMILY
    out: str = ""
