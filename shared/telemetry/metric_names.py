"""Every metric of Berth, as one closed list; docs/metrics.md is generated from it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

MetricName = Literal[
    "berth_admitted_jobs",
    "berth_behind_seconds",
    "berth_consumer_lag_records",
    "berth_dead_letters",
    "berth_decision_seconds",
    "berth_decisions",
    "berth_deferred_jobs",
    "berth_disk_free_bytes",
    "berth_disk_size_bytes",
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
    "berth_jobs",
    "berth_lanes_held",
    "berth_llm_batch_ratio",
    "berth_llm_oldest_wait_seconds",
    "berth_llm_requests",
    "berth_llm_service_gap_tokens",
    "berth_llm_tokens_per_second",
    "berth_lost_appends",
    "berth_nodes",
    "berth_nodes_suspected",
    "berth_order_age_seconds",
    "berth_policies_degraded",
    "berth_projection_lag_seconds",
    "berth_queue_gpus",
    "berth_queue_oldest_wait_seconds",
    "berth_requests_limited",
    "berth_rounds",
    "berth_solve_seconds",
    "berth_spans_dropped",
    "berth_spans_exported",
    "berth_spans_unsampled",
    "berth_submissions_held_seconds",
    "berth_tenant_use_ratio",
    "berth_tenant_weight_ratio",
    "berth_undecided_seconds",
]

Kind = Literal["counter", "gauge", "histogram"]
Group = Literal[
    "process", "bus", "admission", "priority", "placement", "failslow", "throttle", "gateway"
]


class Spec(NamedTuple):
    """`group`: every process, what moves records, or the one service that has the metric."""

    kind: Kind
    group: Group
    text: str
    labels: tuple[str, ...] = ()


METRICS: Mapping[MetricName, Spec] = MappingProxyType(
    {
        "berth_info": Spec("gauge", "process", "Who this is; always 1", ("service", "instance")),
        "berth_event_loop_stall_seconds": Spec(
            "histogram", "process", "How late the event loop woke a sleeper"
        ),
        "berth_disk_free_bytes": Spec("gauge", "process", "Free on the disk of its data folder"),
        "berth_disk_size_bytes": Spec("gauge", "process", "Size of the disk of its data folder"),
        "berth_spans_exported": Spec("counter", "process", "Spans that were taken"),
        "berth_spans_dropped": Spec("counter", "process", "Spans that were lost", ("reason",)),
        "berth_spans_unsampled": Spec(
            "counter", "process", "Spans of jobs outside BERTH_TRACE_SAMPLE"
        ),
        "berth_decisions": Spec(
            "counter", "bus", "Accepted events; of the publisher `published`", ("type",)
        ),
        "berth_decision_seconds": Spec(
            "histogram", "bus", "From drawing a batch of inputs to its accepted record"
        ),
        "berth_inputs": Spec("counter", "bus", "Records and requests taken in", ("source",)),
        "berth_inbox_inputs": Spec(
            "gauge", "bus", "Inputs that are read and wait for their turn", ("partition",)
        ),
        "berth_consumer_lag_records": Spec(
            "gauge",
            "bus",
            "Records not read yet: of a decider's inputs, an executor's ledgers, what tenants sent",
            ("topic", "partition"),
        ),
        "berth_lanes_held": Spec("gauge", "bus", "Lanes that this copy of the service holds"),
        "berth_lost_appends": Spec(
            "counter", "bus", "Appends whose outcome only a fold could tell: rivals, lost answers"
        ),
        "berth_ignored_records": Spec(
            "counter", "bus", "Records of a ledger that the reader rule ignored", ("reason",)
        ),
        "berth_dead_letters": Spec(
            "counter", "bus", "Inputs that could not be decoded; of the publisher `all`", ("topic",)
        ),
        "berth_projection_lag_seconds": Spec(
            "histogram", "bus", "From a record's time to its committed rows, or events", ("view",)
        ),
        "berth_behind_seconds": Spec(
            "gauge", "bus", "Since projector or publisher was last at the end of the ledgers"
        ),
        "berth_admitted_jobs": Spec("gauge", "admission", "Jobs that are in", ("pool",)),
        "berth_deferred_jobs": Spec(
            "gauge", "admission", "Jobs that wait to be let in", ("pool", "reason")
        ),
        "berth_fairness_gap_ratio": Spec(
            "gauge",
            "priority",
            "Largest share of use less share of weight of a tenant with jobs here, 0 to 1",
            ("pool",),
        ),
        "berth_tenant_use_ratio": Spec(
            "gauge",
            "priority",
            "Share of the decayed use, of the 50 tenants that used most",
            ("pool", "tenant"),
        ),
        "berth_tenant_weight_ratio": Spec(
            "gauge", "priority", "Share of the weights, of the same tenants", ("pool", "tenant")
        ),
        "berth_policies_degraded": Spec(
            "gauge", "priority", "Learned and shadow policies that can say nothing", ("pool",)
        ),
        "berth_order_age_seconds": Spec(
            "gauge", "priority", "Age of the last order, while jobs wait; else 0", ("pool",)
        ),
        "berth_jobs": Spec("gauge", "placement", "Jobs by phase", ("pool", "phase")),
        "berth_queue_gpus": Spec("gauge", "placement", "GPUs that waiting jobs want", ("pool",)),
        "berth_queue_oldest_wait_seconds": Spec(
            "gauge", "placement", "How long the oldest waiting job has waited, wall", ("pool",)
        ),
        "berth_undecided_seconds": Spec(
            "gauge",
            "placement",
            "Since something changed that no round has looked at while jobs wait",
            ("pool",),
        ),
        "berth_gpus": Spec(
            "gauge", "placement", "GPUs of the nodes that are there", ("pool", "gpu_type")
        ),
        "berth_gpus_held": Spec(
            "gauge", "placement", "GPUs that jobs hold, in devices", ("pool", "gpu_type")
        ),
        "berth_gpu_utilization_ratio": Spec(
            "gauge", "placement", "GPUs held of those that are there, 0 to 1", ("pool",)
        ),
        "berth_fragmentation_ratio": Spec(
            "gauge",
            "placement",
            "Free GPUs on partly used nodes of all free ones, 0 to 1",
            ("pool",),
        ),
        "berth_nodes": Spec(
            "gauge", "placement", "Nodes: alive, cordoned or lost", ("pool", "state")
        ),
        "berth_nodes_suspected": Spec(
            "gauge", "placement", "Nodes that fail-slow has made less healthy", ("pool",)
        ),
        "berth_rounds": Spec(
            "counter", "placement", "Contended rounds by what the solver made of them", ("status",)
        ),
        "berth_solve_seconds": Spec("histogram", "placement", "Wall time of a solve"),
        "berth_gangs_watched": Spec("gauge", "failslow", "Gangs that are compared", ("pool",)),
        "berth_faults_open": Spec("gauge", "failslow", "Suspicions that are open", ("pool",)),
        "berth_llm_requests": Spec(
            "gauge", "throttle", "Requests: waiting or running", ("endpoint", "state")
        ),
        "berth_llm_oldest_wait_seconds": Spec(
            "gauge", "throttle", "How long the oldest waiting request has waited", ("endpoint",)
        ),
        "berth_llm_tokens_per_second": Spec(
            "gauge",
            "throttle",
            "Output tokens while the engine is busy, as measured",
            ("endpoint",),
        ),
        "berth_llm_batch_ratio": Spec(
            "gauge", "throttle", "Tokens that the running batch holds of its room", ("endpoint",)
        ),
        "berth_llm_service_gap_tokens": Spec(
            "gauge",
            "throttle",
            "Between the counters of the tenants that wait, most less least",
            ("endpoint",),
        ),
        "berth_requests_limited": Spec(
            "counter",
            "gateway",
            "Requests of a tenant that asked too often: answered 429",
            ("tenant",),
        ),
        "berth_submissions_held_seconds": Spec(
            "counter",
            "gateway",
            "Nothing was taken from the topic of a tenant that had sent more than its rate",
            ("tenant",),
        ),
    }
)

STANDARD = frozenset({"process_resident_memory_bytes", "process_cpu_seconds_total", "up"})
"""From prometheus_client and from Prometheus itself."""


def samples(name: MetricName) -> tuple[str, ...]:
    """What a query calls it."""
    match METRICS[name].kind:
        case "counter":
            return (f"{name}_total",)
        case "histogram":
            return f"{name}_bucket", f"{name}_count", f"{name}_sum"
    return (name,)


QUERYABLE = frozenset(sample for name in METRICS for sample in samples(name)) | STANDARD
"""Every name that an alert or a dashboard may use."""
