"""JSON by the C part of the standard library's `json`: the rest of it takes a step 0.9 MiB."""

from __future__ import annotations

from _json import encode_basestring_ascii, make_encoder, make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

WHITESPACE = " \t\n\r"
SEPARATORS = ": ", ", "


class _Reading:
    """Settings of the scanner: values are those that `json.loads` gives."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


_scan = make_scanner(_Reading())  # type: ignore[arg-type]


def encode(value: object) -> str:
    """Return the text. Raises TypeError, ValueError."""
    sort_keys, skip_keys, allow_nan = False, False, True
    write = make_encoder(
        {}, _refuse, encode_basestring_ascii, None, *SEPARATORS, sort_keys, skip_keys, allow_nan
    )
    return "".join(write(value, 0))


def decode(text: str) -> Any:
    """Return the value. Raises ValueError."""
    start = len(text) - len(text.lstrip(WHITESPACE))
    try:
        value, end = _scan(text, start)
    except StopIteration as missing:
        raise ValueError(f"no value at character {missing.value}") from None
    if text[end:].strip(WHITESPACE):
        raise ValueError(f"extra data at character {end}")
    return value


def _refuse(value: object) -> NoReturn:
    raise TypeError(f"{type(value).__name__} is no value of JSON")
