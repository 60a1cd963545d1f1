"""Starts the projector: settings, telemetry, run."""

from __future__ import annotations

import os
from functools import partial

from services.projector.app import Projector
from services.projector.settings import ProjectorSettings
from shared.bus.fatal import run_to_end
from shared.process.settings import read_settings
from shared.telemetry.shell import run_reader

if __name__ == "__main__":
    settings = read_settings(ProjectorSettings, os.environ)
    run_to_end(run_reader("projector", settings, partial(Projector, settings)), "projector")
