"""Starts fail-slow: `python -m services.failslow`."""

from __future__ import annotations

import os

from services.failslow.app import run
from services.failslow.settings import FailSlowSettings
from shared.process.settings import read_settings

if __name__ == "__main__":
    run(read_settings(FailSlowSettings, os.environ))
