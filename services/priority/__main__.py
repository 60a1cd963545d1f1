"""Starts priority: `python -m services.priority`."""

from __future__ import annotations

import os

from services.priority.app import run
from services.priority.settings import PrioritySettings
from shared.process.settings import read_settings

if __name__ == "__main__":
    run(read_settings(PrioritySettings, os.environ))
