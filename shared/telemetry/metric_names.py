"""Every metric of Berth, as one closed list; docs/metrics.md is generated from it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from shared.telemetry.metric_spec import Spec

MetricName = Literal[
    "berth_admitted_jobs",
    "berth_agent_refusals",
    "berth_agent_sessions",
    "berth_archive_behind_seconds",
    "berth_archive_free_ratio",
    "berth_archive_unreachable_seconds",
    "berth_behind_seconds",
    "berth_certificate_expires_seconds",
    "berth_clock_steps",
    "berth_consumer_lag_records",
    "berth_dead_letters",
    "berth_decision_seconds",
    "berth_decisions",
    "berth_deferred_jobs",
    "berth_disk_free_bytes",
    "berth_disk_size_bytes",
    "berth_dropped_records",
    "berth_event_loop_stall_seconds",
    "berth_fairness_gap_ratio",
    "berth_faults_open",
    "berth_fragmentation_ratio",
    "berth_gangs_watched",
    "berth_gpu_utilization_ratio",
    "berth_gpus",
    "berth_gpus_held",
    "berth_ignored_records",
    "berth_inbox_inputs",
    "berth_info",
    "berth_inputs",
    "berth_inputs_quarantined",
    "berth_job_logs_behind_seconds",
    "berth_jobs",
    "berth_lanes_halted",
    "berth_lanes_held",
    "berth_llm_batch_ratio",
    "berth_llm_capacity_requests",
    "berth_llm_oldest_wait_seconds",
    "berth_llm_rejections",
    "berth_llm_requests",
    "berth_llm_service_gap_tokens",
    "berth_llm_tokens_per_second",
    "berth_lost_appends",
    "berth_node_credential_expires_seconds",
    "berth_nodes",
    "berth_nodes_enrolled",
    "berth_nodes_suspected",
    "berth_notifications",
    "berth_notifications_waiting",
    "berth_order_age_seconds",
    "berth_policies_degraded",
    "berth_projection_lag_seconds",
    "berth_proposals",
    "berth_propose_seconds",
    "berth_queue_gpus",
    "berth_queue_oldest_wait_seconds",
    "berth_requests_limited",
    "berth_retention_behind_seconds",
    "berth_rounds",
    "berth_solve_seconds",
    "berth_spans_dropped",
    "berth_spans_exported",
    "berth_spans_unsampled",
    "berth_submissions_held_seconds",
    "berth_tenant_use_ratio",
    "berth_tenant_weight_ratio",
    "berth_undecided_seconds",
    "berth_workers_stuck",
]

METRICS: Mapping[MetricName, Spec] = MappingProxyType(
    {
        "berth_info": Spec(
            "gauge", "process", "Service and instance; always 1", ("service", "instance")
        ),
        "berth_event_loop_stall_seconds": Spec(
            "histogram", "process", "Delay of the event loop in waking a timer"
        ),
        "berth_certificate_expires_seconds": Spec(
            "gauge",
            "process",
            "Time until the server's certificate ends, negative after it; absent without TLS",
        ),
        "berth_disk_free_bytes": Spec(
            "gauge", "process", "Free bytes on the disk of the data folder"
        ),
        "berth_disk_size_bytes": Spec("gauge", "process", "Size of the disk of the data folder"),
        "berth_spans_exported": Spec("counter", "process", "Exported spans"),
        "berth_spans_dropped": Spec("counter", "process", "Dropped spans", ("reason",)),
        "berth_spans_unsampled": Spec(
            "counter", "process", "Spans of jobs outside BERTH_TRACE_SAMPLE"
        ),
        "berth_decisions": Spec(
            "counter", "bus", "Accepted events; of the publisher `published`", ("type",)
        ),
        "berth_decision_seconds": Spec(
            "histogram", "bus", "From taking a batch of inputs to its accepted record"
        ),
        "berth_inputs": Spec("counter", "bus", "Consumed records and requests", ("source",)),
        "berth_inbox_inputs": Spec(
            "gauge", "bus", "Inputs that were read and not decided yet", ("partition",)
        ),
        "berth_consumer_lag_records": Spec(
            "gauge",
            "bus",
            "Unread records: of a decider's inputs, an executor's ledgers, tenants' submissions",
            ("topic", "partition"),
        ),
        "berth_lanes_held": Spec("gauge", "bus", "Lanes held by this copy of the service"),
        "berth_lanes_halted": Spec(
            "gauge", "bus", "1 for a lane that cannot go on; absent for all others", ("partition",)
        ),
        "berth_inputs_quarantined": Spec(
            "counter", "bus", "Inputs quarantined after an internal error", ("topic",)
        ),
        "berth_clock_steps": Spec("counter", "bus", "Steps of the host's clock, 1 s or more"),
        "berth_lost_appends": Spec(
            "counter",
            "bus",
            "Appends with an outcome known only from the fold: rivals, lost answers",
        ),
        "berth_ignored_records": Spec(
            "counter", "bus", "Ledger records ignored by the reader rule", ("reason",)
        ),
        "berth_dead_letters": Spec(
            "counter", "bus", "Inputs that could not be decoded; of the publisher `all`", ("topic",)
        ),
        "berth_projection_lag_seconds": Spec(
            "histogram", "bus", "From a record's time to its committed rows, or events", ("view",)
        ),
        "berth_archive_behind_seconds": Spec("gauge", "bus", "Time since all due was archived"),
        "berth_archive_unreachable_seconds": Spec("gauge", "bus", "Time since it could be written"),
        "berth_archive_free_ratio": Spec("gauge", "bus", "Free share of the archive's disk"),
        "berth_job_logs_behind_seconds": Spec(
            "gauge", "bus", "Time since all output of jobs was stored that was due"
        ),
        "berth_retention_behind_seconds": Spec(
            "gauge", "bus", "Age of the oldest record beyond its topic's retention", ("topic",)
        ),
        "berth_behind_seconds": Spec("gauge", "bus", "Time since a reader was at the ledgers' end"),
        "berth_admitted_jobs": Spec("gauge", "admission", "Admitted jobs", ("pool",)),
        "berth_deferred_jobs": Spec(
            "gauge", "admission", "Jobs that wait for admission", ("pool", "reason")
        ),
        "berth_fairness_gap_ratio": Spec(
            "gauge",
            "priority",
            "Largest share of use minus share of weight of a tenant with jobs, 0 to 1",
            ("pool",),
        ),
        "berth_tenant_use_ratio": Spec(
            "gauge",
            "priority",
            "Share of the decayed use, for the 50 tenants with the highest use",
            ("pool", "tenant"),
        ),
        "berth_tenant_weight_ratio": Spec(
            "gauge", "priority", "Share of the weights, for the same tenants", ("pool", "tenant")
        ),
        "berth_policies_degraded": Spec(
            "gauge", "priority", "Learned and shadow policies that cannot score", ("pool",)
        ),
        "berth_order_age_seconds": Spec(
            "gauge", "priority", "Age of the last order, while jobs wait; else 0", ("pool",)
        ),
        "berth_jobs": Spec("gauge", "placement", "Jobs by phase", ("pool", "phase")),
        "berth_queue_gpus": Spec("gauge", "placement", "GPUs requested by waiting jobs", ("pool",)),
        "berth_queue_oldest_wait_seconds": Spec(
            "gauge", "placement", "How long the oldest waiting job has waited, wall", ("pool",)
        ),
        "berth_undecided_seconds": Spec(
            "gauge",
            "placement",
            "Time since a change that no round has considered while jobs wait",
            ("pool",),
        ),
        "berth_gpus": Spec("gauge", "placement", "GPUs of joined nodes", ("pool", "gpu_type")),
        "berth_gpus_held": Spec(
            "gauge", "placement", "GPUs held by jobs, in devices", ("pool", "gpu_type")
        ),
        "berth_gpu_utilization_ratio": Spec(
            "gauge", "placement", "Share of GPUs that are held, 0 to 1", ("pool",)
        ),
        "berth_fragmentation_ratio": Spec(
            "gauge",
            "placement",
            "Share of free GPUs that are on partly used nodes, 0 to 1",
            ("pool",),
        ),
        "berth_nodes": Spec(
            "gauge",
            "placement",
            "Nodes: alive, cordoned, silent, lost or held_back",
            ("pool", "state"),
        ),
        "berth_workers_stuck": Spec("gauge", "placement", "Killed workers still alive", ("pool",)),
        "berth_nodes_suspected": Spec(
            "gauge", "placement", "Nodes with reduced health by fail-slow", ("pool",)
        ),
        "berth_rounds": Spec("counter", "placement", "Contended rounds by outcome", ("status",)),
        "berth_solve_seconds": Spec("histogram", "placement", "Wall time of a solve"),
        "berth_proposals": Spec("counter", "placement", "Proposals by outcome", ("status",)),
        "berth_propose_seconds": Spec("histogram", "placement", "Wall time of a proposal"),
        "berth_gangs_watched": Spec("gauge", "failslow", "Gangs under comparison", ("pool",)),
        "berth_faults_open": Spec("gauge", "failslow", "Open suspicions", ("pool",)),
        "berth_llm_requests": Spec(
            "gauge", "throttle", "Requests: waiting or running", ("endpoint", "state")
        ),
        "berth_llm_rejections": Spec(
            "counter", "throttle", "Rejected requests by reason", ("endpoint", "reason")
        ),
        "berth_llm_capacity_requests": Spec(
            "gauge",
            "throttle",
            "Requests that engines take at once; none if drained",
            ("endpoint",),
        ),
        "berth_llm_oldest_wait_seconds": Spec(
            "gauge", "throttle", "How long the oldest waiting request has waited", ("endpoint",)
        ),
        "berth_llm_tokens_per_second": Spec(
            "gauge", "throttle", "Output tokens per second while engines are busy", ("endpoint",)
        ),
        "berth_llm_batch_ratio": Spec(
            "gauge",
            "throttle",
            "Share of the capacity in use: in tokens if the endpoint limits them, else in requests",
            ("endpoint",),
        ),
        "berth_llm_service_gap_tokens": Spec(
            "gauge", "throttle", "Largest difference of waiting tenants' counters", ("endpoint",)
        ),
        "berth_agent_sessions": Spec(
            "gauge",
            "executor",
            "Nodes whose agent sent a request to this executor in the last two minutes",
            ("pool", "version"),
        ),
        "berth_agent_refusals": Spec(
            "counter", "executor", "Refused requests of agents", ("reason",)
        ),
        "berth_dropped_records": Spec(
            "counter",
            "executor",
            "Records of telemetry and logs that were dropped: too many waited, or not acknowledged",
            ("topic",),
        ),
        "berth_nodes_enrolled": Spec(
            "gauge",
            "gateway",
            "Nodes with an identity: pending, approved, revoked or expired",
            ("pool", "state"),
        ),
        "berth_node_credential_expires_seconds": Spec(
            "gauge",
            "gateway",
            "Time until the first credential of an approved node expires",
            ("pool",),
        ),
        "berth_requests_limited": Spec(
            "counter", "gateway", "Requests above the tenant's rate, answered 429", ("tenant",)
        ),
        "berth_submissions_held_seconds": Spec(
            "counter",
            "gateway",
            "Time in which the topic of a tenant above its rate was not read",
            ("tenant",),
        ),
        "berth_notifications": Spec(
            "counter",
            "notifier",
            "Attempts by outcome; of the kind `all` those dropped, as too many waited",
            ("kind", "outcome"),
        ),
        "berth_notifications_waiting": Spec(
            "gauge", "notifier", "Notifications that wait for an attempt", ("kind",)
        ),
    }
)


def samples(name: MetricName) -> tuple[str, ...]:
    """Return the names of the metric's samples in queries."""
    match METRICS[name].kind:
        case "counter":
            return (f"{name}_total",)
        case "histogram":
            return f"{name}_bucket", f"{name}_count", f"{name}_sum"
    return (name,)
