"""The dashboard of nodes, rounds and the solver."""

from __future__ import annotations

from infra.grafana.panels import Board, Panel
from infra.grafana.queries import POOL, POOLS, p50_and_p99, q, quantile, rate

PLACEMENT = Board(
    "berth-placement",
    "Berth: placement and solver",
    (
        Panel(
            "utilisation",
            (q(f"max by (pool) (berth_gpu_utilization_ratio{{{POOL}}})", "{{pool}}"),),
            "percentunit",
        ),
        Panel(
            "fragmentation",
            (q(f"max by (pool) (berth_fragmentation_ratio{{{POOL}}})", "{{pool}}"),),
            "percentunit",
            text="Free GPUs on partly used nodes, of all free ones.",
        ),
        Panel("nodes", (q(f"sum by (pool, state) (berth_nodes{{{POOL}}})", "{{pool}} {{state}}"),)),
        Panel(
            "nodes that should be there, and agents that are",
            (
                q(
                    f'max by (pool) (berth_nodes_enrolled{{{POOL}, state="approved"}})',
                    "{{pool}} approved",
                ),
                q(
                    f"sum by (pool, version) (berth_agent_sessions{{{POOL}}})",
                    "{{pool}} connected, agent {{version}}",
                ),
            ),
        ),
        Panel(
            "refused requests of agents",
            (q(rate("berth_agent_refusals_total", "reason"), "{{reason}}"),),
            "ops",
        ),
        Panel(
            "dropped records of telemetry and logs",
            (q(rate("berth_dropped_records_total", "topic"), "{{topic}}"),),
            "ops",
        ),
        Panel(
            "first end of a node's credential",
            (q(f"min by (pool) (berth_node_credential_expires_seconds{{{POOL}}})", "{{pool}}"),),
            "s",
        ),
        Panel(
            "undecided",
            (q(f"max by (pool) (berth_undecided_seconds{{{POOL}}})", "{{pool}}"),),
            "s",
            text="Since something changed that no round has looked at.",
            warn=30,
        ),
        Panel(
            "contended rounds by solver status",
            (q(rate("berth_rounds_total", "status"), "{{status}}"),),
            "ops",
            text="late, died, refused: greedy planned the round alone.",
        ),
        Panel("solve time", p50_and_p99("berth_solve_seconds"), "s"),
        Panel(
            "proposals of schedulers by outcome",
            (q(rate("berth_proposals_total", "status"), "{{status}}"),),
            "ops",
            text="late, died: the last plan stands.",
        ),
        Panel("proposal time", p50_and_p99("berth_propose_seconds"), "s"),
        Panel(
            "placed, preempted, moved, resized",
            tuple(
                q(rate("berth_decisions_total", "type", f'type="job.{verb}.v1"'), verb)
                for verb in ("placed", "preempted", "migrated", "resized")
            ),
            "ops",
        ),
        Panel(
            "ends",
            tuple(
                q(
                    rate(
                        "berth_decisions_total",
                        "type",
                        f'service="placement", type="job.{verb}.v1"',
                    ),
                    verb,
                )
                for verb in ("succeeded", "failed", "cancelled", "attempt-failed", "start-failed")
            ),
            "ops",
        ),
        Panel(
            "placement's decision latency",
            (
                q(quantile(0.5, "berth_decision_seconds", "service", 'service="placement"'), "p50"),
                q(
                    quantile(0.99, "berth_decision_seconds", "service", 'service="placement"'),
                    "p99",
                ),
            ),
            "s",
        ),
    ),
    POOLS,
)
