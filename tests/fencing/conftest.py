"""A stack and a pool of nodes for the tests of fencing on real agents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.supervisor.stack import AGENT
from tests.e2e.stand import Stand, a_stand
from tests.fencing.pool import Pool


@pytest.fixture(scope="package")
def stand() -> Iterator[Stand]:
    """Yield a stack; after the last test its log is verified."""
    with a_stand(AGENT, "failslow", "throttle") as stand:
        yield stand
        assert stand.verify().violations == []


@pytest.fixture
def pool(stand: Stand, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pool]:
    tmp_path.chmod(0o755)
    name = re.sub("[^a-z0-9]+", "-", request.node.name.removeprefix("test_")).strip("-")
    pool = Pool(stand, name, tmp_path)
    yield pool
    pool.end()
    pool.check()
