"""The seat decider as a process of its own, for the tests of the host."""

from __future__ import annotations

import logging
import os

from shared.bus.hosting.host import run_service
from shared.process.settings import Settings, read_settings
from tests.harness.ledger import SeatDecider

if __name__ == "__main__":
    logging.basicConfig(level="WARNING")
    failpoint = {k: v for k, v in os.environ.items() if k != "BERTH_FAILPOINT"}
    run_service(SeatDecider(), settings=read_settings(Settings, failpoint))
