"""Comma-separated tables of public traces, read by column, with errors that name the field."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
from numpy.typing import NDArray

from simulator.workload.errors import TraceError, first_line
from simulator.workload.files import open_trace, peek, undecodable_row
from simulator.workload.table import ROW

Floats = NDArray[np.float64]
Columns = Mapping[str, NDArray[Any] | pa.ChunkedArray | pa.Array]

EMPTY = ("", "nan", "NaN", "None", "NULL", "null")
"""Texts of the public files for an empty value."""

BLOCK_BYTES = 8 << 20
# How Arrow words what has a rule of its own here. (Its handler of invalid rows, which gets the
# numbers, breaks on a row that is not UTF-8.)
_WRONG_LENGTH = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_UTF8, _NO_ROWS = "UTF8", ("Empty CSV file", "Could not skip initial")


@dataclass(frozen=True, slots=True)
class Sheet:
    """Some columns of a block of rows, as text; null where the file has no value.

    `first_row` is the block's position in the file: rows in errors count from the file's first.
    """

    file: Path
    table: pa.Table
    first_row: int = 0

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def has(self, column: str) -> bool:
        return column in self.table.column_names

    def text(self, column: str) -> pa.ChunkedArray:
        """Return a column; one that the file lacks is all null."""
        if self.has(column):
            return self.table[column]
        return pa.chunked_array([pa.nulls(len(self), pa.string())])

    def number(self, column: str) -> Floats:
        """Return a column of numbers; empty is NaN, other text is an error with its row."""
        return self._converted(column, pa.float64(), float, "a number")

    def time_s(self, column: str) -> Floats:
        """Return seconds of a common epoch; empty is NaN. All with a zone, or all without."""
        zoned = _zoned(self.text(column))
        kind = pa.timestamp("s", "UTC" if zoned else None)
        rule = "a time such as 2020-06-09 18:41:01" + ("+08:00" if zoned else "")
        return self._converted(column, kind, _time_check(zoned), rule)

    def _converted(
        self, column: str, kind: pa.DataType, check: Callable[[str], object], rule: str
    ) -> Floats:
        texts = self.text(column)
        try:
            cast = texts.cast(kind)
        except pa.ArrowException as error:
            raise self._refused(column, texts, check, rule) from error
        if pa.types.is_timestamp(kind):
            cast = cast.cast(pa.int64())
        return np.array(cast.to_numpy(), np.float64)

    def _refused(
        self, column: str, texts: pa.ChunkedArray, check: Callable[[str], object], rule: str
    ) -> TraceError:
        for row, text in enumerate(texts.to_pylist(), self.first_row):
            try:
                check("0" if text is None else text) if check is float else text and check(text)
            except ValueError:
                return TraceError(self.file, f"must be {rule}, is {text!r}", column=column, row=row)
        return TraceError(self.file, f"must be {rule}", column=column)


def read_blocks(
    file: Path,
    required: Sequence[str],
    optional: Sequence[str] = (),
    names: Sequence[str] | None = None,
) -> Iterator[Sheet]:
    """Yield the `required` and, where the file has them, the `optional` columns, block by block.

    `names` are the columns of a file without a header. Raises TraceError for a missing column, a
    row of another length, text that is not UTF-8, and a file without rows.
    """
    header = list(names) if names else read_header(file)
    for column in required:
        if column not in header:
            raise TraceError(file, "is required but missing", column=column)
    selected = [column for column in (*required, *optional) if column in header]
    row = 0
    for block in _blocks(file, header, selected, 0 if names else 1):
        yield Sheet(file, pa.Table.from_batches([block]), row)
        row += block.num_rows
    if row == 0:
        raise TraceError(file, "holds no rows")


def gather_blocks(sheets: Iterable[Sheet], convert: Callable[[Sheet], Columns]) -> pa.Table:
    """Return all blocks after `convert`; NaN becomes null, `row` is the row of the file."""
    tables = []
    for sheet in sheets:
        rows = np.arange(sheet.first_row, sheet.first_row + len(sheet))
        tables.append(to_table({**convert(sheet), ROW: rows}))
    return pa.concat_tables(tables)


def to_table(columns: Columns) -> pa.Table:
    """Return a table of numpy and arrow columns; NaN becomes null."""
    arrays = {
        name: pa.array(values, from_pandas=True) if isinstance(values, np.ndarray) else values
        for name, values in columns.items()
    }
    return pa.table(arrays)


def map_texts(texts: pa.ChunkedArray, words: Mapping[str, str], otherwise: str) -> pa.Array:
    """Map each text to its word, ignoring case; `otherwise` for others, null for null."""
    encoded = texts.combine_chunks().dictionary_encode()
    meant = [words.get(text.lower(), otherwise) for text in encoded.dictionary.to_pylist()]
    return pa.array(meant, pa.string()).take(encoded.indices)


def read_header(file: Path) -> list[str]:
    """Return the column names of a table."""
    head = peek(file)
    if not head.strip():
        raise TraceError(file, "is empty")
    try:
        first = head.partition(b"\n")[0].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TraceError(file, "must be UTF-8, its header is not") from error
    return [name.strip().strip('"') for name in first.rstrip("\r").split(",")]


def _blocks(
    file: Path, header: Sequence[str], selected: Sequence[str], header_rows: int
) -> Iterator[pa.RecordBatch]:
    if not peek(file).strip():
        raise TraceError(file, "is empty")
    read = pv.ReadOptions(
        use_threads=False, block_size=BLOCK_BYTES, column_names=header, skip_rows=header_rows
    )
    convert = pv.ConvertOptions(
        column_types=dict.fromkeys(selected, pa.string()),
        include_columns=selected,
        null_values=EMPTY,
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )
    with open_trace(file) as stream:
        try:
            with pv.open_csv(stream, read, convert_options=convert) as reader:
                yield from reader
        except pa.ArrowException as error:
            raise _refused_row(file, error, header_rows) from error


def _refused_row(file: Path, error: Exception, header_rows: int) -> TraceError:
    if match := _WRONG_LENGTH.search(str(error)):
        row, expected, actual = map(int, match.groups())
        rule = f"must have {expected} columns, has {actual}"
        return TraceError(file, rule, row=row - 1 - header_rows)
    if any(words in str(error) for words in _NO_ROWS):
        return TraceError(file, "holds no rows")
    if _UTF8 in str(error):
        return TraceError(file, "must be UTF-8", row=undecodable_row(file, header_rows))
    return TraceError(file, f"is not a readable table ({first_line(error)})")


def _zoned(texts: pa.ChunkedArray) -> bool:
    first = pc.drop_null(texts)[:1].to_pylist()
    try:
        return bool(first) and datetime.fromisoformat(first[0]).tzinfo is not None
    except ValueError:
        return False


def _time_check(zoned: bool) -> Callable[[str], object]:
    def check(text: str) -> None:
        if (datetime.fromisoformat(text).tzinfo is not None) != zoned:
            raise ValueError(text)

    return check
