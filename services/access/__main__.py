"""`python -m services.access`: run the access service."""

from __future__ import annotations

import os

from services.access.app import run
from services.access.settings import AccessSettings
from shared.process.settings import read_settings

if __name__ == "__main__":
    run(read_settings(AccessSettings, os.environ))
