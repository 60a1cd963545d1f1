"""The dashboards; every metric is listed in `shared/telemetry/metric_names.py`."""

from __future__ import annotations

from infra.grafana.panels import Board, Panel, Query

RANGE = "$__rate_interval"
POOL = 'pool=~"$pool"'
POOLS = (("pool", "label_values(berth_jobs, pool)"),)
ENDPOINTS = (("endpoint", "label_values(berth_llm_requests, endpoint)"),)
SERVICES = (("service", "label_values(berth_info, service)"),)
OF = 'service=~"$service"'


def q(expression: str, legend: str = "") -> Query:
    return Query(expression, legend)


def rate(name: str, by: str, where: str = "") -> str:
    """Return the PromQL rate of a counter, per second."""
    return f"sum by ({by}) (rate({name}{{{where}}}[{RANGE}]))"


def quantile(share: float, histogram: str, by: str, where: str = "") -> str:
    buckets = f"rate({histogram}_bucket{{{where}}}[{RANGE}])"
    return f"histogram_quantile({share}, sum by ({by}, le) ({buckets}))"


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
            (q("max by (service) (berth_behind_seconds)", "{{service}}"),),
            "s",
            warn=30,
        ),
    ),
    POOLS,
)

QUEUE = Board(
    "berth-queue",
    "Berth: queue and fairness",
    (
        Panel(
            "waiting jobs",
            (q(f'sum by (pool) (berth_jobs{{{POOL}, phase="waiting"}})', "{{pool}}"),),
        ),
        Panel(
            "GPUs that they want", (q(f"sum by (pool) (berth_queue_gpus{{{POOL}}})", "{{pool}}"),)
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
        Panel(
            "solve time",
            (
                q(quantile(0.5, "berth_solve_seconds", "service"), "p50"),
                q(quantile(0.99, "berth_solve_seconds", "service"), "p99"),
            ),
            "s",
        ),
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

ENDPOINT = 'endpoint=~"$endpoint"'
LLM = Board(
    "berth-llm",
    "Berth: LLM throttling",
    (
        Panel(
            "requests",
            (
                q(
                    f"sum by (endpoint, state) (berth_llm_requests{{{ENDPOINT}}})",
                    "{{endpoint}} {{state}}",
                ),
            ),
        ),
        Panel(
            "oldest waiting request",
            (
                q(
                    f"max by (endpoint) (berth_llm_oldest_wait_seconds{{{ENDPOINT}}})",
                    "{{endpoint}}",
                ),
            ),
            "s",
            warn=30,
        ),
        Panel(
            "tokens per second",
            (q(f"sum by (endpoint) (berth_llm_tokens_per_second{{{ENDPOINT}}})", "{{endpoint}}"),),
        ),
        Panel(
            "batch in use",
            (q(f"max by (endpoint) (berth_llm_batch_ratio{{{ENDPOINT}}})", "{{endpoint}}"),),
            "percentunit",
        ),
        Panel(
            "gap between tenants that wait",
            (q(f"max by (endpoint) (berth_llm_service_gap_tokens{{{ENDPOINT}}})", "{{endpoint}}"),),
            text="Virtual tokens; the policy keeps it below a bound.",
        ),
        Panel(
            "what became of requests",
            tuple(
                q(rate("berth_decisions_total", "type", f'type="llm.{verb}.v1"'), verb)
                for verb in ("queued", "started", "finished", "rejected")
            ),
            "ops",
        ),
    ),
    ENDPOINTS,
)

BUS = Board(
    "berth-bus",
    "Berth: bus and processes",
    (
        Panel(
            "records not read yet",
            (
                q(
                    f"max by (service, topic) (berth_consumer_lag_records{{{OF}}})",
                    "{{service}} {{topic}}",
                ),
            ),
            warn=5000,
        ),
        Panel(
            "inputs that wait inside",
            (q(f"sum by (service) (berth_inbox_inputs{{{OF}}})", "{{service}}"),),
        ),
        Panel(
            "lanes held and halted",
            (
                q(f"sum by (service) (berth_lanes_held{{{OF}}})", "{{service}} held"),
                q(f"sum by (service) (berth_lanes_halted{{{OF}}})", "{{service}} halted"),
            ),
        ),
        Panel(
            "lost appends",
            (q(rate("berth_lost_appends_total", "service", OF), "{{service}}"),),
            "ops",
            text="A rival or a lost answer; each costs a fold, none a decision.",
        ),
        Panel(
            "ignored records",
            (
                q(
                    rate("berth_ignored_records_total", "service, reason", OF),
                    "{{service}} {{reason}}",
                ),
            ),
            "ops",
        ),
        Panel(
            "dead letters",
            (q(rate("berth_dead_letters_total", "topic", 'service!="publisher"'), "{{topic}}"),),
            "ops",
        ),
        Panel(
            "inputs set aside",
            (
                q(
                    rate("berth_inputs_quarantined_total", "service, topic", OF),
                    "{{service}} {{topic}}",
                ),
            ),
            "ops",
        ),
        Panel(
            "read models and events: lag, p99",
            (
                q(
                    quantile(0.99, "berth_projection_lag_seconds", "service, view"),
                    "{{service}} {{view}}",
                ),
            ),
            "s",
        ),
        Panel(
            "event loop, p99 of waking late",
            (q(quantile(0.99, "berth_event_loop_stall_seconds", "service", OF), "{{service}}"),),
            "s",
            warn=0.5,
        ),
        Panel(
            "spans lost",
            (
                q(
                    rate("berth_spans_dropped_total", "service, reason", OF),
                    "{{service}} {{reason}}",
                ),
            ),
            "ops",
        ),
        Panel(
            "spans sent, and not sampled",
            (
                q(rate("berth_spans_exported_total", "service", OF), "{{service}}"),
                q(rate("berth_spans_unsampled_total", "service", OF), "{{service}} not sampled"),
            ),
            "ops",
        ),
        Panel(
            "memory",
            (q(f"max by (service) (process_resident_memory_bytes{{{OF}}})", "{{service}}"),),
            "bytes",
        ),
        Panel(
            "CPU",
            (q(rate("process_cpu_seconds_total", "service", OF), "{{service}}"),),
            "percentunit",
        ),
        Panel(
            "free disk",
            (
                q(
                    f"min by (service) (berth_disk_free_bytes{{{OF}}}"
                    f" / berth_disk_size_bytes{{{OF}}})",
                    "{{service}}",
                ),
            ),
            "percentunit",
        ),
        Panel(
            "inputs",
            (q(rate("berth_inputs_total", "service, source", OF), "{{service}} {{source}}"),),
            "ops",
        ),
        Panel(
            "requests over a tenant's limit",
            (q(rate("berth_requests_limited_total", "tenant"), "{{tenant}}"),),
            "ops",
            text="Answered 429 by the gateway; BERTH_TENANT_RATE, BERTH_TENANT_BURST.",
        ),
        Panel(
            "time in which a tenant's topic is not read",
            (q(rate("berth_submissions_held_seconds_total", "tenant"), "{{tenant}}"),),
            "percentunit",
            text="It published more than its rate: the same two settings.",
        ),
    ),
    SERVICES,
)

BOARDS = (OVERVIEW, QUEUE, PLACEMENT, FAILSLOW, LLM, BUS)
