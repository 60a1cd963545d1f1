"""Lists of numbers on the command line: 10 or 10,12,10."""

from __future__ import annotations

from cli.errors import BadInput


def parse_floats(flag: str, text: str) -> list[float]:
    """Return the numbers of a flag. Raises BadInput."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise BadInput(f"{flag}: {text!r} is not a number, or numbers and commas") from None


def parse_integers(flag: str, text: str) -> list[int]:
    """Return the whole numbers of a flag. Raises BadInput."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise BadInput(f"{flag}: {text!r} is not a whole number, or such and commas") from None
