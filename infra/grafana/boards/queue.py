"""The dashboard of the queue and of fairness between tenants."""

from __future__ import annotations

from infra.grafana.panels import Board, Panel
from infra.grafana.queries import POOL, POOLS, q

QUEUE = Board(
    "berth-queue",
    "Berth: queue and fairness",
    (
        Panel(
            "waiting jobs",
            (q(f'sum by (pool) (berth_jobs{{{POOL}, phase="waiting"}})', "{{pool}}"),),
        ),
        Panel(
            "GPUs requested by waiting jobs",
            (q(f"sum by (pool) (berth_queue_gpus{{{POOL}}})", "{{pool}}"),),
        ),
        Panel(
            "oldest waiting job",
            (q(f"max by (pool) (berth_queue_oldest_wait_seconds{{{POOL}}})", "{{pool}}"),),
            "s",
            warn=86400,
        ),
        Panel(
            "not admitted yet, by reason",
            (q(f"sum by (reason) (berth_deferred_jobs{{{POOL}}})", "{{reason}}"),),
        ),
        Panel(
            "share of use",
            (
                q(
                    f"max by (pool, tenant) (berth_tenant_use_ratio{{{POOL}}})",
                    "{{pool}} {{tenant}}",
                ),
            ),
            "percentunit",
            text="Decayed GPU time; of the 50 tenants that used most.",
        ),
        Panel(
            "use above fair share",
            (
                q(
                    f"max by (pool, tenant) (berth_tenant_use_ratio{{{POOL}}})"
                    f" - max by (pool, tenant) (berth_tenant_weight_ratio{{{POOL}}})",
                    "{{pool}} {{tenant}}",
                ),
            ),
            "percentunit",
        ),
        Panel(
            "fairness gap",
            (q(f"max by (pool) (berth_fairness_gap_ratio{{{POOL}}})", "{{pool}}"),),
            "percentunit",
            text="The tenant with jobs here that is furthest above its fair share.",
        ),
        Panel(
            "age of the order",
            (q(f"max by (pool) (berth_order_age_seconds{{{POOL}}})", "{{pool}}"),),
            "s",
            text="Placement does not heed an order older than 10 s.",
            warn=10,
        ),
        Panel(
            "degraded policies",
            (q(f"max by (pool) (berth_policies_degraded{{{POOL}}})", "{{pool}}"),),
            warn=1,
        ),
    ),
    POOLS,
)
