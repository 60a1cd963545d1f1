"""Trace files, plain or gzipped."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from simulator.workload.errors import TraceError
from simulator.workload.files import PEEK_BYTES, open_trace, peek, undecodable_row


@pytest.mark.parametrize("name", ["plain.csv", "misnamed.csv"])
def test_a_file_is_unpacked_by_its_content_not_its_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"a,b\n") if name == "misnamed.csv" else b"a,b\n")
    with open_trace(path) as stream:
        assert stream.read() == b"a,b\n"


def test_peek_reads_no_more_than_the_beginning(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"x" * (PEEK_BYTES + 1))
    assert len(peek(path)) == PEEK_BYTES


def test_a_cut_gzip_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(b"a,b\n" * 1000)[:-9])
    with pytest.raises(TraceError, match="damaged gzip"), open_trace(path) as stream:
        stream.read()


def test_the_row_that_is_not_utf8_is_counted_from_the_first_row_of_data(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"head\nok\n\xff\n")
    assert undecodable_row(path, 1) == 1
