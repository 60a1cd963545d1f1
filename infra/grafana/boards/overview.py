"""The dashboard of what matters first."""

from __future__ import annotations

from infra.grafana.panels import Board, Panel
from infra.grafana.queries import POOL, POOLS, q, quantile, rate

OVERVIEW = Board(
    "berth-overview",
    "Berth: overview",
    (
        Panel("services that answer", (q('sum(up{job="berth"})', "up"),), kind="stat", width=4),
        Panel(
            "GPUs in use",
            (q(f"avg(berth_gpu_utilization_ratio{{{POOL}}})"),),
            "percentunit",
            "stat",
            4,
        ),
        Panel(
            "jobs waiting",
            (q(f'sum(berth_jobs{{{POOL}, phase="waiting"}})'),),
            kind="stat",
            width=4,
        ),
        Panel(
            "oldest waiting job",
            (q(f"max(berth_queue_oldest_wait_seconds{{{POOL}}})"),),
            "s",
            "stat",
            4,
            warn=86400,
        ),
        Panel(
            "dead letters in a day",
            (q('sum(increase(berth_dead_letters_total{service!="publisher"}[1d]))'),),
            kind="stat",
            width=4,
            warn=1,
        ),
        Panel(
            "open faults", (q(f"sum(berth_faults_open{{{POOL}}})"),), kind="stat", width=4, warn=1
        ),
        Panel(
            "GPUs held",
            (
                q(f"sum by (pool) (berth_gpus_held{{{POOL}}})", "{{pool}} held"),
                q(f"sum by (pool) (berth_gpus{{{POOL}}})", "{{pool}} there"),
            ),
            text="In devices; a fraction of a GPU counts as a fraction.",
        ),
        Panel("jobs", (q(f"sum by (phase) (berth_jobs{{{POOL}}})", "{{phase}}"),)),
        Panel("decisions", (q(rate("berth_decisions_total", "service"), "{{service}}"),), "ops"),
        Panel(
            "decision latency, p99",
            (q(quantile(0.99, "berth_decision_seconds", "service"), "{{service}}"),),
            "s",
            text="From drawing a batch of inputs to its accepted record.",
        ),
        Panel(
            "records not read yet",
            (q("max by (service, topic) (berth_consumer_lag_records)", "{{service}} {{topic}}"),),
            warn=5000,
        ),
        Panel(
            "behind the ledgers",
            (
                q("max by (service) (berth_behind_seconds)", "{{service}}"),
                q("max(berth_archive_behind_seconds)", "archive"),
                q("max(berth_archive_unreachable_seconds)", "archive unreachable"),
                q("max by (topic) (berth_retention_behind_seconds)", "retention of {{topic}}"),
            ),
            "s",
            warn=30,
        ),
        Panel(
            "output of jobs that is not stored yet",
            (q("max(berth_job_logs_behind_seconds)", "age"),),
            "s",
            warn=1800,
        ),
        Panel(
            "webhooks and mails",
            (
                q(rate("berth_notifications_total", "kind, outcome"), "{{kind}} {{outcome}}"),
                q("sum by (kind) (berth_notifications_waiting)", "{{kind}} waiting"),
            ),
        ),
    ),
    POOLS,
)
