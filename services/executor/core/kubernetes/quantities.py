"""Quantities as Kubernetes writes them: `500m`, `16Gi`, `1e3`."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

BYTES_PER_GIB = 2**30
FACTORS = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal("1e3"),
    "M": Decimal("1e6"),
    "G": Decimal("1e9"),
    "T": Decimal("1e12"),
    "P": Decimal("1e15"),
    "E": Decimal("1e18"),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}
QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")


def parse_quantity(value: object) -> float:
    """Return a quantity as a number, 0 for one that is missing or of another form."""
    return _parsed(str(value))


@lru_cache(1024)
def _parsed(text: str) -> float:
    match = QUANTITY.fullmatch(text)
    if match is None:
        return 0.0
    number, suffix = match.groups()
    return float(Decimal(number) * FACTORS[suffix or ""])


def parse_gib(value: object) -> float:
    return parse_quantity(value) / BYTES_PER_GIB
