"""Readers of decoded JSON: each checks a value and names its path where it is wrong."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, TypeVar

T = TypeVar("T")
Reader = Callable[[object, str], T]
"""Returns the value of a field, given its JSON and its path. Raises MalformedMessage."""
Json = None | bool | int | float | str | list[Any] | dict[str, Any]
SHOWN_CHARS = 80
LARGEST = sys.float_info.max


class MalformedMessage(ValueError):
    """A message breaks the contract: `path: what is wrong: value; what is allowed`."""


class Message:
    """Base of the messages; unknown fields are ignored, so that old agents accept newer servers."""

    __slots__ = ()
    READERS: ClassVar[Mapping[str, Reader[Any]]] = {}
    REQUIRED: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def from_json(cls, value: object, path: str = "") -> Self:
        """Read the message from decoded JSON. Raises MalformedMessage."""
        where = path or cls.__name__
        if not isinstance(value, dict):
            raise _wrong(value, where, "an object")
        for name in sorted(cls.REQUIRED.difference(value)):
            raise MalformedMessage(f"{where}.{name}: missing; it is required")
        readers = cls.READERS.items()
        return cls(**{n: read(value[n], f"{where}.{n}") for n, read in readers if n in value})

    def to_json(self) -> dict[str, Json]:
        """Return the message as plain values."""
        return {name: _plain(getattr(self, name)) for name in self.READERS}


M = TypeVar("M", bound=Message)


def integer(minimum: int | None = None, maximum: int | None = None) -> Reader[int]:
    """Read an integer within inclusive bounds."""

    def read(value: object, path: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise _wrong(value, path, "an integer")
        if (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
            raise _wrong(value, path, f"an integer from {minimum} to {maximum}")
        return value

    return read


def number(
    minimum: float | None = None, maximum: float | None = None, above: float | None = None
) -> Reader[float]:
    """Read a finite number; `above` is an exclusive lower bound."""

    def read(value: object, path: str) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise _wrong(value, path, "a number")
        if not -LARGEST <= value <= LARGEST:
            raise _wrong(value, path, "a finite number")
        if above is not None and value <= above:
            raise _wrong(value, path, f"a number above {above}")
        if (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
            raise _wrong(value, path, f"a number from {minimum} to {maximum}")
        return float(value)

    return read


def text(shortest: int = 0, longest: int | None = None, pattern: str = "") -> Reader[str]:
    """Read a string of a length in characters, all of which match a pattern."""
    matches = re.compile(pattern or ".*", re.DOTALL).fullmatch

    def read(value: object, path: str) -> str:
        if not isinstance(value, str):
            raise _wrong(value, path, "a string")
        if len(value) < shortest or (longest is not None and len(value) > longest):
            raise _wrong(value, path, f"{shortest} to {longest} characters")
        if not matches(value):
            raise _wrong(value, path, f"a string that matches {pattern}")
        return value

    return read


def boolean() -> Reader[bool]:
    """Read true or false."""

    def read(value: object, path: str) -> bool:
        if not isinstance(value, bool):
            raise _wrong(value, path, "true or false")
        return value

    return read


def choice(*allowed: str) -> Reader[Any]:
    """Read one of the allowed strings."""

    def read(value: object, path: str) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise _wrong(value, path, f"one of {', '.join(allowed)}")
        return value

    return read


def optional(reader: Reader[T]) -> Reader[T | None]:
    """Read null as None."""
    return lambda value, path: None if value is None else reader(value, path)


def items(reader: Reader[T], most: int | None = None) -> Reader[tuple[T, ...]]:
    """Read an array of at most `most` items."""

    def read(value: object, path: str) -> tuple[T, ...]:
        if not isinstance(value, list) or (most is not None and len(value) > most):
            raise _wrong(value, path, f"an array of at most {most} items")
        return tuple(reader(item, f"{path}[{place}]") for place, item in enumerate(value))

    return read


def mapping(reader: Reader[T], most: int | None = None) -> Reader[dict[str, T]]:
    """Read an object of at most `most` fields of one type."""

    def read(value: object, path: str) -> dict[str, T]:
        if not isinstance(value, dict) or (most is not None and len(value) > most):
            raise _wrong(value, path, f"an object of at most {most} fields")
        return {name: reader(item, f"{path}.{name[:64]}") for name, item in value.items()}

    return read


def message(cls: type[M]) -> Reader[M]:
    """Read a message of one class."""
    return cls.from_json


def of_kind(classes: Mapping[str, type[M]]) -> Reader[Any]:
    """Read a message whose field `kind` names its class."""

    def read(value: object, path: str) -> Any:
        kind = value.get("kind") if isinstance(value, dict) else None
        if not isinstance(kind, str) or kind not in classes:
            raise _wrong(kind, f"{path}.kind", f"one of {', '.join(classes)}")
        return classes[kind].from_json(value, path)

    return read


def _wrong(value: object, path: str, allowed: str) -> MalformedMessage:
    shown = f"{type(value).__name__} {_shown(value)}"[:SHOWN_CHARS]
    return MalformedMessage(f"{path}: wrong value: {shown}; {allowed} is allowed")


def _shown(value: object) -> str:
    """Return the value as text; an integer of a million digits has none."""
    try:
        return repr(value)
    except ValueError:
        return "too long"


def _plain(value: object) -> Any:
    if isinstance(value, Message):
        return value.to_json()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value
