"""The shared stack, with the pids of its processes before the first bad input."""

from __future__ import annotations

import pytest

from tests.e2e.stand import Stand


@pytest.fixture(scope="package")
def stand(shared_stand: Stand) -> Stand:
    shared_stand.pids_at_start = shared_stand.pids()
    return shared_stand
