"""`python -m services.throttle`: run the throttle service."""

from __future__ import annotations

import os

from services.throttle.app import run
from services.throttle.settings import ThrottleSettings
from shared.process.settings import read_settings

if __name__ == "__main__":
    run(read_settings(ThrottleSettings, os.environ))
