"""Queries of use exist for every group and every kind of budget."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from services.gateway.reads.llm_queries import AMOUNTS, GROUPS, HOLDERS, By, usage_by, use_of_budget
from shared.contracts.endpoints import TokenBudget
from shared.projections.database import connect


def test_every_group_has_its_columns() -> None:
    assert set(GROUPS) == set(get_args(By))


@pytest.mark.parametrize("field", ["holder", "unit", "memory"])
def test_budgets_have_the_words_of_the_contract(field: str) -> None:
    words = set(get_args(TokenBudget.model_fields[field].annotation))
    known = {"holder": set(HOLDERS), "unit": set(AMOUNTS), "memory": MEMORIES}
    assert words == known[field]


MEMORIES = {"window", "half_life", "forever"}


async def test_postgres_knows_every_column_of_them(database: str) -> None:
    conn = await connect(database)
    await conn.execute("SET search_path TO berth")
    for by in get_args(By):
        assert await conn.fetch(usage_by(by), None, 0, 10) == []
    for holder, unit, memory in product(HOLDERS, AMOUNTS, sorted(MEMORIES)):
        rules = () if memory == "forever" else (10**12, 60_000.0)
        sql = use_of_budget({"holder": holder, "unit": unit, "memory": memory})
        assert await conn.fetch(sql, None, "chat", 10**9, *rules) == []
    await conn.close()
