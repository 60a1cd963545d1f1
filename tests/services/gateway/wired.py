"""A gateway that is wired but not started: its view of access is filled, its read models absent."""

from __future__ import annotations

from services.gateway.settings import GatewaySettings
from services.gateway.wiring import Gateway, wire_gateway
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker
from shared.contracts.base import Event
from shared.ledger.partition import TP
from shared.process.settings import read_settings
from shared.telemetry.metrics import Metrics
from shared.telemetry.setup import Telemetry
from shared.telemetry.spans import Spans
from tests.harness.ledger import accepted

SETTINGS = read_settings(GatewaySettings, {"BERTH_KAFKA": "127.0.0.1:1", "BERTH_DATA": "/nowhere"})


def gateway(*events: Event) -> Gateway:
    """Return a gateway that has read these events of access."""
    made = wire_gateway(SETTINGS, Telemetry(Spans("gateway", "", "g"), Metrics("gateway", "g")))
    broker = MemoryBroker()
    LedgerWriter(broker, "access").write(events)
    for record in accepted(TP("access", 0), broker.entries(TP("access", 0))):
        made.access.fold(record)
    return made
