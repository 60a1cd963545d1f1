"""Rows of read models as a test has them."""

from __future__ import annotations

from collections.abc import Mapping

from shared.verify.row_store import Figures, RowStore


def stored_rows(tables: Mapping[str, Mapping[str, Figures]]) -> RowStore:
    store = RowStore()
    for table, by_key in tables.items():
        for key, row in by_key.items():
            store.put(table, key, row)
    return store
