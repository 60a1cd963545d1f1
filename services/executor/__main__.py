"""Starts an executor: `python -m services.executor`."""

from __future__ import annotations

import asyncio
import os

from services.executor.serve import serve
from services.executor.settings import ExecutorSettings
from shared.settings import read

if __name__ == "__main__":
    asyncio.run(serve(read(ExecutorSettings, os.environ)))
