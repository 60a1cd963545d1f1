"""The dashboard of the bus and of processes."""

from __future__ import annotations

from infra.grafana.panels import Board, Panel
from infra.grafana.queries import q, quantile, rate

OF = 'service=~"$service"'
SERVICES = (("service", "label_values(berth_info, service)"),)

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
            "steps of hosts' clocks",
            (q(rate("berth_clock_steps_total", "service", OF), "{{service}}"),),
            "ops",
            text="Recorded as `clock.stepped.v1`; no ledger's time steps.",
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
            "inputs quarantined",
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
                q("min(berth_archive_free_ratio)", "archive"),
            ),
            "percentunit",
        ),
        Panel(
            "end of the servers' certificates",
            (q(f"min by (service) (berth_certificate_expires_seconds{{{OF}}})", "{{service}}"),),
            "s",
            text="Renewed when ten days are left.",
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
