"""Runs of events that differ from one before them in their text alone: they are found, not parsed.

Nearly all events of a stream are such. One that was parsed is remembered as what is before and
behind its text; an event that begins and ends alike means the same with another text.
"""

from __future__ import annotations

import re

from services.throttle.relay.chunk_marks import ERROR, FINISH, TEXT, USAGE

PLAIN = re.compile(rb'[^"\\\x00-\x1f]*+')
"""Text as JSON has it, up to its end or to the first character that is escaped."""
START, END = b"data: ", b"\n\n"
MOST_BYTES = 64 * 1024
"""Longest text of an event in a run, bytes; a longer one is parsed."""
MOST_MISSES = 4
"""Runs of no event after which a stream is read event by event."""


class TextRuns:
    """The runs of one stream."""

    def __init__(self) -> None:
        self._before, self._behind = b"", b""
        self._misses = 0

    def learn(self, raw: bytes) -> bool:
        """Remember an event that holds a text; return whether others may be like it."""
        if self._misses >= MOST_MISSES or not (raw.startswith(START) and raw.endswith(END)):
            return False
        match = TEXT.search(raw)
        if match is None:
            return False
        begin, end = match.end(), _end_of_text(raw, match.end())
        before, behind = raw[:begin], raw[end:]
        if not behind.startswith(b'"') or b"\n" in raw[: -len(END)] or b"\r" in raw:
            return False
        if ERROR.match(raw, len(START)) or TEXT.search(behind) or _ends(before) or _ends(behind):
            return False
        self._before, self._behind = before, behind
        self._misses += 1
        return True

    def take(self, data: bytes, start: int) -> tuple[int, list[bytes]]:
        """Return the end of the run that begins at `start`, and its texts; `start` without one."""
        before, behind = self._before, self._behind
        texts: list[bytes] = []
        while before and data.startswith(before, start):
            begin = start + len(before)
            end = _end_of_text(data, begin)
            if end == begin or end - begin > MOST_BYTES or not data.startswith(behind, end):
                break
            texts.append(data[begin:end])
            start = end + len(behind)
        if texts:
            self._misses = 0
        return start, texts


def _ends(side: bytes) -> bool:
    """Return whether the fields of an event have a usage, or the reason of an end."""
    return USAGE.search(side) is not None or FINISH.search(side) is not None


def _end_of_text(data: bytes, begin: int) -> int:
    match = PLAIN.match(data, begin)
    return begin if match is None else match.end()
