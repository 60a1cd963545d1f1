"""The dashboard of slow nodes and links."""

from __future__ import annotations

from infra.grafana.panels import Board, Panel
from infra.grafana.queries import POOL, POOLS, q, rate

FAILSLOW = Board(
    "berth-failslow",
    "Berth: fail-slow",
    (
        Panel("gangs watched", (q(f"sum by (pool) (berth_gangs_watched{{{POOL}}})", "{{pool}}"),)),
        Panel(
            "open faults", (q(f"sum by (pool) (berth_faults_open{{{POOL}}})", "{{pool}}"),), warn=1
        ),
        Panel(
            "suspected nodes",
            (
                q(f"sum by (pool) (berth_nodes_suspected{{{POOL}}})", "{{pool}}"),
                q(f"sum by (pool) (berth_workers_stuck{{{POOL}}})", "{{pool}} stuck workers"),
            ),
            warn=1,
        ),
        Panel(
            "verdicts",
            tuple(
                q(rate("berth_decisions_total", "type", f'type="fault.{verb}.v1"'), verb)
                for verb in ("suspected", "cleared", "dismissed")
            ),
            "ops",
        ),
        Panel(
            "moves away",
            (q(rate("berth_decisions_total", "type", 'type="job.migrated.v1"'), "migrated"),),
            "ops",
        ),
        Panel(
            "telemetry that could not be read",
            (q(rate("berth_ignored_records_total", "reason", 'service="failslow"'), "{{reason}}"),),
            "ops",
        ),
    ),
    POOLS,
)
