"""`python -m services.placement`"""

from __future__ import annotations

import os

from services.placement.app import run
from services.placement.settings import PlacementSettings
from shared.settings import read_settings

if __name__ == "__main__":
    run(read_settings(PlacementSettings, os.environ))
