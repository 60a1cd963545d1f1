"""Starts the notifier: settings, telemetry, run."""

from __future__ import annotations

import os
from functools import partial

from services.notifier.app import Notifier
from services.notifier.settings import NotifierSettings
from shared.bus.fatal import run_to_end
from shared.process.settings import read_settings
from shared.telemetry.shell import run_reader

RESOLVER = "timeout:2 attempts:2"
"""Options of the resolver (resolv.conf(5)): a silent name server ends before the attempt does."""


if __name__ == "__main__":
    os.environ.setdefault("RES_OPTIONS", RESOLVER)
    settings = read_settings(NotifierSettings, os.environ)
    run_to_end(run_reader("notifier", settings, partial(Notifier, settings)), "notifier")
