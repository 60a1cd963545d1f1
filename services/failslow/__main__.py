"""`python -m services.failslow`"""

from __future__ import annotations

import os

from services.failslow.app import run
from services.failslow.settings import FailSlowSettings
from shared.settings import read

if __name__ == "__main__":
    run(read(FailSlowSettings, os.environ))
