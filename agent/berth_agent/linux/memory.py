"""Memory that a process no longer needs, given back before it waits for long."""

from __future__ import annotations

from berth_agent.linux.libc import CInt, Size, function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MADV_DONTNEED = 4

_advise = function("madvise", Size, Size, CInt)


def release_file_pages() -> None:
    """Unmap the pages of programs and libraries that only the start needed.

    Those that are used again come back from the page cache. A mapping with a page of its own,
    which was written to and is nowhere else, is left as it is.
    """
    mappings = _own_mappings()
    # The largest is the interpreter, which runs this loop: it comes last. What is still there after
    # it brings pages back when it goes.
    mappings.sort(reverse=True)
    while mappings:
        size, start = mappings.pop()
        # A mapping that is locked stays, which is no reason to fail.
        _advise(start, size, MADV_DONTNEED)


def _own_mappings() -> list[tuple[int, int]]:
    """Return the mappings of this process that can be released; none where they are not shown."""
    try:
        with open("/proc/self/smaps", "rb") as smaps:
            return clean_file_mappings(smaps)
    except OSError:
        return []


def clean_file_mappings(smaps: Iterable[bytes]) -> list[tuple[int, int]]:
    """Return size and address of each mapping of a file that cannot be written, and was not."""
    mappings: list[tuple[int, int]] = []
    present: tuple[int, int] | None = None
    for line in smaps:
        if line.startswith(b"Anonymous:"):
            if present and line.split()[1] == b"0":
                mappings.append(present)
        elif b"-" in line.partition(b" ")[0]:
            present = _file_range(line.split())
    return mappings


def _file_range(words: list[bytes]) -> tuple[int, int] | None:
    """Return size and address of a mapping that is of a file and cannot be written."""
    if b"w" in words[1] or len(words) < 6 or not words[5].startswith(b"/"):
        return None
    start, _, end = words[0].partition(b"-")
    return int(end, 16) - int(start, 16), int(start, 16)
