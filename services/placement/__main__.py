"""`python -m services.placement`"""

from __future__ import annotations

import os

from services.placement.app import run
from shared.process.settings import Settings, read_settings

if __name__ == "__main__":
    run(read_settings(Settings, os.environ))
