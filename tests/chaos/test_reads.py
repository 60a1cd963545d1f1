"""Behind a bad network to Postgres, reads of the gateway fail in time, and work again after."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest.mock import patch

import pytest

from infra.drills.proxy import Mode, Proxy
from services.gateway.reads import database as gateway
from services.gateway.reads.database import Database
from services.gateway.responses.problem import ApiError
from shared.contracts.registry import Bearer
from tests.chaos.test_projection import socket_of, through
from tests.patience import PATIENCE_S

OPERATOR = Bearer("k", "operator", None)
READ = "SELECT count(*) AS jobs FROM job"


@pytest.mark.parametrize("mode", ["cut", "half_open"])
async def test_reads_behind_a_bad_network_to_postgres_are_refused_in_time(
    mode: Mode, database: str, tmp_path: Path
) -> None:
    """Half open: the connections of the pool look as good as ever, and nothing comes back."""
    proxy = Proxy(socket_of(database))
    await proxy.start(tmp_path / ".s.PGSQL.5432")
    reads = Database(through(database, tmp_path))
    await asyncio.gather(*(reads.rows(OPERATOR, READ) for _ in range(2)))
    proxy.mode = mode
    with patch.multiple(gateway, ANSWER_S=1.0, CONNECT_S=1.0):
        for _ in range(2):
            # Many more than connections: waiting for a free one counts as well.
            pending = [reads.rows(OPERATOR, READ) for _ in range(120)]
            async with asyncio.timeout(PATIENCE_S):
                refused = await asyncio.gather(*pending, return_exceptions=True)
            assert {type(error) for error in refused} == {ApiError}
    proxy.mode = "good"
    assert await reads.rows(OPERATOR, READ) == [{"jobs": 0}]
    await reads.stop()
    await proxy.stop()
