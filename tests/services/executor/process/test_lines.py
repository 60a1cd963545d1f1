"""Lines read from the file of a worker's output."""

from __future__ import annotations

from pathlib import Path

from services.executor.process.lines import CHUNK_BYTES, LINE_CHARS, LINES, LineTail


def tail_of(path: Path) -> LineTail:
    path.touch()
    return LineTail(path.open("rb"))


def test_only_whole_lines_are_returned_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "out"
    tail = tail_of(path)
    path.write_bytes(b"one\ntwo\nthr")
    assert tail.poll() == (0, ("one", "two"))
    with path.open("ab") as file:
        file.write(b"ee\nfour")
    assert tail.poll() == (2, ("three",))
    assert tail.finish() == (3, ("four",))


def test_other_encodings_and_controls_become_marks(tmp_path: Path) -> None:
    path = tmp_path / "out"
    tail = tail_of(path)
    path.write_bytes(b"\xff\xfe caf\xe9\r\n\x1b[31mred\x00\n")
    assert tail.finish() == (0, ("\ufffd\ufffd caf\ufffd", "\ufffd[31mred\ufffd"))


def test_long_lines_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "out"
    tail = tail_of(path)
    path.write_bytes(b"x" * (3 * CHUNK_BYTES) + b"\nend\n")
    first, lines = tail.finish()
    assert (first, lines[-1], len(lines[0])) == (0, "end", LINE_CHARS)


def test_a_flood_is_bounded_and_the_last_lines_come_with_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "out"
    tail = tail_of(path)
    path.write_bytes(b"".join(b"line %d\n" % n for n in range(100_000)))
    first, lines = tail.poll()
    assert first == 0 and len(lines) == LINES and lines[0] == "line 0"
    first, lines = tail.finish()
    assert (first, len(lines), lines[-1]) == (100_000 - LINES, LINES, "line 99999")
