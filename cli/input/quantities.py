"""Times and sizes on the command line: 5400, 90m or 1.5h; 16, 512M or 16G."""

from __future__ import annotations

import re

from cli.errors import BadInput
from cli.text.times import UNIT_S

NUMBER = r"(?P<number>\d{1,12}(?:\.\d{1,9})?)"
TIME = re.compile(rf"{NUMBER}(?P<unit>[smhd]?)", re.ASCII)
MEMORY = re.compile(rf"{NUMBER}(?:(?P<unit>[MGT])(?:i?B|i)?)?", re.ASCII)
UNIT_GIB = {"M": 1 / 1024, "G": 1.0, "T": 1024.0}


def parse_walltime_s(text: object) -> float:
    """Return the seconds of a walltime: a number of them, or one with s, m, h or d.

    Raises BadInput.
    """
    match = TIME.fullmatch(str(text))
    span_s = float(match["number"]) * UNIT_S[match["unit"] or "s"] if match else 0.0
    if span_s < 0.001:
        rule = "seconds, or a number with s, m, h or d, such as 90m, is allowed"
        raise BadInput(f"--walltime: {text!r}; {rule}")
    return span_s


def parse_memory_gib(text: object) -> float:
    """Return the GiB of a size: a number of them, or one with M, G or T, which count by 1024.

    Raises BadInput.
    """
    match = MEMORY.fullmatch(str(text))
    if match is None:
        rule = "GiB, or a number with M, G or T, such as 512M, is allowed"
        raise BadInput(f"--mem: {text!r}; {rule}")
    return float(match["number"]) * UNIT_GIB[match["unit"] or "G"]
