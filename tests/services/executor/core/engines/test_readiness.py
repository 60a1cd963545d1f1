"""Workers of a job of the engine meet at one port, which follows from its id."""

from __future__ import annotations

import pytest

from services.executor.core.engines.readiness import FIRST_PORT, PORTS, port_of


@pytest.mark.parametrize("ref", ["17", "berth-00ff12", "none", "9" * 30])
def test_a_port_is_one_that_linux_gives_to_no_client(ref: str) -> None:
    assert FIRST_PORT <= port_of(ref) < FIRST_PORT + PORTS < 32_768
    assert port_of("17") == FIRST_PORT + 17
