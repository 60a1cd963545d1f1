from __future__ import annotations

from pathlib import Path

import pytest

from services.admission.core.evolve import evolve
from services.admission.core.state import AdmissionState
from shared.contracts.base import EVENTS, Event
from shared.contracts.codec import decode_event
from shared.contracts.jobs import CommandAccepted
from shared.contracts.placement import JobPlaced
from shared.ledger.decider import Fact
from tests.contracts.examples import FIXTURES
