"""Searches large JSON in short steps: a decoder would keep the lock of the interpreter meanwhile.

It runs in a thread. Fields are cut out of an object, and their insides are searched, not checked:
the engine refuses what is invalid there. Effort is bounded by `MOST_MARKS`, whatever the bytes are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count as count_from

import msgspec
from msgspec import Raw

LARGE_BYTES = 128 * 1024
"""Values above it are searched here."""
SLICE_BYTES = 256 * 1024
"""Bytes that one step searches, in some ms at most."""
MOST_MARKS = 100_000
"""Strings and brackets of one body."""
MOST_DEPTH = 900
MARK = re.compile(rb'["\[\]{}]')
STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
BLANK = re.compile(rb"[ \t\r\n]*+")
SCALAR = re.compile(rb"[-+.0-9A-Za-z]++")
KEY = msgspec.json.Decoder(str)
MOST_KEY_BYTES = 1024
INVALID = "not valid JSON; a JSON object is required"


class BadJson(ValueError):
    """The text names the rule that the JSON breaks."""


class LargeJson:
    """The bytes of one value, and how many marks were met in them."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._marks = 0

    def fields(self, most: int) -> dict[str, Raw]:
        """Return the fields of the object. Raises BadJson, also for more than `most` of them."""
        view, fields = memoryview(self._data), dict[str, Raw]()
        at = self._blank(self._expect(self._blank(0), b"{"))
        if self._byte(at) == b"}":
            self._finish(at + 1)
            return fields
        for number in count_from(1):
            if number > most:
                raise BadJson(f"object of more than {most} fields; at most {most} are allowed")
            start, end = self._key(at)
            value = self._blank(self._expect(self._blank(end), b":"))
            after = self._value(value)
            fields[_name(view[start:end])] = Raw(view[value:after])
            at = self._blank(after)
            if self._byte(at) == b"}":
                self._finish(at + 1)
                return fields
            at = self._blank(self._expect(at, b","))
        return fields

    def elements(self) -> Iterator[tuple[int, int]]:
        """Yield start and end of each element of the array. Raises BadJson."""
        at = self._blank(self._expect(self._blank(0), b"["))
        while self._byte(at) != b"]":
            end = self._value(at)
            yield at, end
            at = self._blank(end)
            if self._byte(at) == b",":
                at = self._blank(at + 1)

    def _key(self, at: int) -> tuple[int, int]:
        """Return start and end of the name of a field."""
        if self._byte(at) != b'"':
            raise BadJson(INVALID)
        end = self._string(at + 1)
        if end - at > MOST_KEY_BYTES:
            raise BadJson(f"a name of more than {MOST_KEY_BYTES} bytes")
        return at, end

    def _value(self, at: int) -> int:
        """Return where the value ends."""
        first = self._byte(at)
        if first == b'"':
            return self._string(at + 1)
        if first in (b"[", b"{"):
            return self._nested(at)
        match = SCALAR.match(self._data, at, at + SLICE_BYTES)
        if match is None:
            raise BadJson(INVALID)
        return match.end()

    def _string(self, at: int) -> int:
        """Return where the string ends that has its first byte at `at`."""
        self._count()
        data = self._data
        while at < len(data):
            stop = at + SLICE_BYTES
            quotation = data.find(b'"', at, stop)
            escape = data.find(b"\\", at, stop if quotation < 0 else quotation)
            if escape < 0:
                if quotation >= 0:
                    return quotation + 1
                at = stop
                continue
            match = STRING.match(data, escape, stop + 1)
            assert match is not None, "an empty text matches"
            if data[match.end() : match.end() + 1] == b'"':
                return match.end() + 1
            if match.end() == at:
                break
            at = match.end()
        raise BadJson(INVALID)

    def _nested(self, at: int) -> int:
        """Return where the array or object ends that begins at `at`."""
        depth, data = 0, self._data
        while at < len(data):
            match = MARK.search(data, at, at + SLICE_BYTES)
            if match is None:
                at += SLICE_BYTES
                continue
            at, mark = match.end(), match[0]
            if mark == b'"':
                at = self._string(at)
                continue
            self._count()
            depth += 1 if mark in b"[{" else -1
            if depth > MOST_DEPTH:
                raise BadJson(f"nested too deeply; at most {MOST_DEPTH} levels are allowed")
            if depth == 0:
                return at
        raise BadJson(INVALID)

    def _count(self) -> None:
        self._marks += 1
        if self._marks > MOST_MARKS:
            text = f"more than {MOST_MARKS} strings and brackets; fewer are required"
            raise BadJson(text)

    def _blank(self, at: int) -> int:
        """Return the next offset that holds no blank."""
        while True:
            match = BLANK.match(self._data, at, at + SLICE_BYTES)
            assert match is not None, "an empty text matches"
            if match.end() < at + SLICE_BYTES:
                return match.end()
            at = match.end()

    def _byte(self, at: int) -> bytes:
        return self._data[at : at + 1]

    def _expect(self, at: int, byte: bytes) -> int:
        if self._byte(at) != byte:
            raise BadJson(INVALID)
        return at + 1

    def _finish(self, at: int) -> None:
        if self._blank(at) != len(self._data):
            raise BadJson(INVALID)


def value_bytes(raw: Raw) -> bytes:
    """Return a copy of a value. Slices of a large one are joined, which frees the lock of the
    interpreter; a copy as a whole would keep it, and so the event loop, for many milliseconds."""
    view = memoryview(raw)
    if view.nbytes <= LARGE_BYTES:
        return bytes(view)
    return b"".join(
        [bytes(view[at : at + SLICE_BYTES]) for at in range(0, view.nbytes, SLICE_BYTES)]
    )


def count(data: bytes, part: bytes) -> int:
    """Return how often the part occurs."""
    if len(data) <= SLICE_BYTES:
        return data.count(part)
    step, more = SLICE_BYTES, len(part) - 1
    return sum(data.count(part, at, at + step + more) for at in range(0, len(data), step))


def find(data: bytes, part: bytes, start: int = 0) -> int:
    """Return where the part occurs first from `start` on; -1 if it does not."""
    more = len(part) - 1
    for at in range(start, len(data), SLICE_BYTES):
        if (place := data.find(part, at, at + SLICE_BYTES + more)) >= 0:
            return place
    return -1


def _name(key: memoryview) -> str:
    try:
        return KEY.decode(key)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadJson(INVALID) from None
