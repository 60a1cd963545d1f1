"""The dashboard of LLM throttling."""

from __future__ import annotations

from infra.grafana.panels import Board, Panel
from infra.grafana.queries import q, rate

ENDPOINT = 'endpoint=~"$endpoint"'
ENDPOINTS = (("endpoint", "label_values(berth_llm_requests, endpoint)"),)

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
        Panel(
            "requests that the engines take",
            (q(f"max by (endpoint) (berth_llm_capacity_requests{{{ENDPOINT}}})", "{{endpoint}}"),),
        ),
        Panel(
            "rejections by reason",
            (q(rate("berth_llm_rejections_total", "endpoint, reason", ENDPOINT), "{{reason}}"),),
            "ops",
        ),
    ),
    ENDPOINTS,
)
