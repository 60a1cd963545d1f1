"""Starts an executor: `python -m services.executor`."""

from __future__ import annotations

import os

from services.executor.serve import serve
from services.executor.settings import ExecutorSettings
from shared.bus.fatal import run_to_end
from shared.process.settings import read_settings

if __name__ == "__main__":
    run_to_end(serve(read_settings(ExecutorSettings, os.environ)), "executor")
