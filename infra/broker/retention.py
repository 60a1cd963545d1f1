"""Sets the retention of topics: ledgers for ever, prompts and answers as it is set."""

from __future__ import annotations

from collections.abc import Iterable

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from shared.contracts.topics import PROMPTS_KEPT_H, TopicSpec

HOUR_MS = 3_600_000
REQUESTS = "llm.requests"
SEGMENTS = 8
"""Segments of a retention: Kafka removes whole ones, so that a record is kept an eighth longer."""
LEAST_SEGMENT_MS = 60_000
LEDGER_SEGMENTS = {"segment.bytes": str(64 << 20), "segment.ms": str(7 * 24 * HOUR_MS)}
"""Segments of topics that are trimmed: Kafka frees whole ones, and never the one it writes to."""
KEEPS_ALL = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""Settings of a topic of which no record is ever removed."""


class WrongTopic(SystemExit):
    """A topic exists with settings with which Berth would be wrong or lose data."""


def kept_ms(hours: float = PROMPTS_KEPT_H) -> int:
    return round(hours * HOUR_MS)


def config(spec: TopicSpec, durable: bool, prompts_ms: int) -> dict[str, str]:
    """Return the configuration of a topic; a broker without a disk has no flush setting."""
    if spec.holds_prompts:
        settings = retention_of_prompts(prompts_ms)
        if not durable:
            del settings["segment.ms"]
    else:
        settings = {"cleanup.policy": "delete", "retention.ms": str(spec.retention_ms)}
    if spec.retention_ms < 0:
        settings["retention.bytes"] = "-1"
        settings |= LEDGER_SEGMENTS if durable else {}
    if spec.flush and durable:
        settings["flush.messages"] = "1"
    return settings


def retention_of_prompts(prompts_ms: int) -> dict[str, str]:
    segment_ms = max(prompts_ms // SEGMENTS, LEAST_SEGMENT_MS)
    retention = {"retention.ms": str(prompts_ms), "segment.ms": str(segment_ms)}
    return {"cleanup.policy": "delete", **retention}


def check_retention(admin: KafkaAdminClient, specs: Iterable[TopicSpec]) -> None:
    """Raise WrongTopic for a ledger of which the broker would remove records."""
    kept = [spec.name for spec in specs if spec.retention_ms < 0]
    for name, present in configs(admin, kept).items():
        for setting, needed in KEEPS_ALL.items():
            if present[setting] != needed:
                raise WrongTopic(
                    f"topic {name}: {setting} is {present[setting]}; must be {needed}, "
                    "since a ledger keeps every record"
                )


def correct_retention(admin: KafkaAdminClient, names: Iterable[str], prompts_ms: int) -> list[str]:
    """Give existing topics of prompts their retention; return those that had another one."""
    desired = retention_of_prompts(prompts_ms)
    wrong = [
        name
        for name, present in configs(admin, names).items()
        if any(present[setting] != value for setting, value in desired.items())
    ]
    resources = [ConfigResource(ConfigResourceType.TOPIC, name, configs=desired) for name in wrong]
    if resources:
        admin.alter_configs(resources)
    return wrong


def correct_segments(admin: KafkaAdminClient, names: Iterable[str]) -> list[str]:
    """Give existing ledgers and lasting inputs their segments; return those that had others."""
    wrong = [
        name
        for name, present in configs(admin, names).items()
        if any(present[setting] != value for setting, value in LEDGER_SEGMENTS.items())
    ]
    kind = ConfigResourceType.TOPIC
    resources = [ConfigResource(kind, name, configs=LEDGER_SEGMENTS) for name in wrong]
    if resources:
        admin.alter_configs(resources)
    return wrong


def prompts_ms_of(admin: KafkaAdminClient, existing: Iterable[str]) -> int:
    """Return for how long the installation keeps prompts: as its topic of requests says."""
    if REQUESTS not in set(existing):
        return kept_ms()
    retention_ms = int(configs(admin, [REQUESTS])[REQUESTS]["retention.ms"])
    return retention_ms if retention_ms > 0 else kept_ms()


def configs(admin: KafkaAdminClient, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the settings of existing topics, also those that are the broker's defaults."""
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    if not resources:
        return {}
    answer = admin.describe_configs(resources, config_filter="all")["topic"]
    return {
        name: {setting: entry["value"] for setting, entry in entries.items()}
        for name, entries in answer.items()
    }
