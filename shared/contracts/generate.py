"""Generate what follows from the contracts: schemas, AsyncAPI, the events, the agent's messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from shared.contracts import agent_dataclasses, codec, llm, node_problems, reports
from shared.contracts.base import COMMANDS, EVENTS
from shared.contracts.topics import (
    CUSTODIAN,
    INPUTS,
    LEDGERS,
    MARKS,
    READS,
    SUBMITS,
    TOPICS,
    WRITER,
)

ROOT = Path(__file__).resolve().parents[2]
Json = dict[str, Any]

PLAIN: dict[str, tuple[type[BaseModel], ...]] = {
    "reports": (
        reports.ExecutorReported,
        reports.CheckpointsReported,
        reports.ProgressReported,
        node_problems.NodeProblemsReported,
    ),
    "heartbeats": (reports.Heartbeats, reports.HeartbeatsRead),
    "telemetry": (reports.TelemetryReported,),
    "logs": (reports.LogLines,),
}
"""Messages of the topics that hold neither commands nor events."""
OF_TENANTS: tuple[type[BaseModel], ...] = (llm.LlmAnswer,)
"""Messages of the topics that only tenants read."""
COMMAND_TOPIC = {"access": "access.commands", "throttle": "llm.requests"}


def wire_models() -> dict[str, type[BaseModel]]:
    """Return every model that is sent as a message of its own, by wire name."""
    assert codec.MODULES, "importing the codec fills the registries"
    plain = [model for models in PLAIN.values() for model in models]
    named = {wire_name(model): model for model in (*plain, *OF_TENANTS)}
    return {**EVENTS, **COMMANDS, **named}


def wire_name(model: type[BaseModel]) -> str:
    return str(getattr(model, "TYPE"))  # noqa: B009


def command_topic(owner: str) -> str:
    return COMMAND_TOPIC.get(owner, "commands")


def schema(model: type[BaseModel]) -> Json:
    document = model.model_json_schema()
    _require_tags(document, document.get("$defs", {}))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}


def _require_tags(node: object, definitions: dict[str, Json]) -> None:
    """Mark the discriminator of each union as required, although it has a default."""
    match node:
        case {"discriminator": {"mapping": dict(refs), "propertyName": str(tag)}}:
            for ref in refs.values():
                required = definitions[ref.rsplit("/", 1)[1]].setdefault("required", [])
                if tag not in required:
                    required.append(tag)
        case dict():
            for value in node.values():
                _require_tags(value, definitions)
        case list():
            for item in node:
                _require_tags(item, definitions)


def envelope(type_: str) -> Json:
    """Return the schema of a CloudEvent of that type; `data` is the model."""
    return {
        "type": "object",
        "required": ["specversion", "id", "source", "type", "data"],
        "properties": {
            "specversion": {"const": "1.0"},
            "id": {"type": "string", "minLength": 1},
            "source": {"type": "string", "minLength": 1},
            "type": {"const": type_},
            "subject": {"type": "string"},
            "time": {"type": "string", "format": "date-time"},
            "traceparent": {"type": "string"},
            "tenant": {"type": "string"},
            "pool": {"type": "string"},
            "data": {"$ref": f"./schemas/{type_}.json"},
        },
    }


def messages_of(topic: str) -> list[str]:
    """Return the wire names that may appear in a topic, sorted."""
    if topic in PLAIN:
        return sorted(map(wire_name, PLAIN[topic]))
    if topic in LEDGERS:
        return sorted(t for t, e in EVENTS.items() if topic in e.LEDGERS)
    if topic == "events":
        return sorted(t for t, e in EVENTS.items() if e.PUBLIC)
    return sorted(t for t, c in COMMANDS.items() if command_topic(c.OWNER) == topic)


def channel(topic: str) -> Json:
    spec = TOPICS[topic]
    names = messages_of(topic)
    return {
        "address": topic,
        "description": f"{spec.kind} topic",
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in names},
        "bindings": {
            "kafka": {
                "topic": topic,
                "topicConfiguration": {
                    "cleanup.policy": ["delete"],
                    "retention.ms": spec.retention_ms,
                },
                "bindingVersion": "0.5.0",
            }
        },
        "x-internal": spec.kind == "ledger",
    }


def operations() -> Json:
    """Return the writers and readers of each topic, which the broker enforces by its ACLs."""
    result: Json = {}
    for topic, service in WRITER.items():
        result[f"{service}.writes.{topic}"] = operation("send", topic)
    for service, topics in (*MARKS.items(), *SUBMITS.items()):
        result |= {f"{service}.writes.{topic}": operation("send", topic) for topic in topics}
    for service in sorted({*INPUTS, *READS}):
        for topic in dict.fromkeys((*INPUTS.get(service, ()), *READS.get(service, ()))):
            result[f"{service}.reads.{topic}"] = operation("receive", topic)
    return result


def operation(action: str, topic: str) -> Json:
    return {"action": action, "channel": {"$ref": f"#/channels/{topic}"}}


def asyncapi() -> Json:
    models = wire_models()
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Berth",
            "version": "1",
            "description": (
                "Tenants write submissions.<tenant> and requests.<tenant> and read"
                " events.<tenant> and answers.<tenant>; operators read events. Ledgers are"
                " internal: each of their records holds a batch of events."
            ),
        },
        "channels": {topic: channel(topic) for topic in TOPICS},
        "operations": operations(),
        "components": {
            "messages": {
                name: {
                    "name": name,
                    "title": model.__name__,
                    "summary": summary(model),
                    "contentType": "application/cloudevents+json",
                    "payload": envelope(name),
                }
                for name, model in sorted(models.items())
            }
        },
    }


def summary(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").strip().splitlines()[0]


def vocabulary() -> str:
    lines = [
        "# Events and commands",
        "",
        "Generated by `make contracts`; do not edit. Events are facts in the ledger of the service",
        "that decided them; those marked *internal* are not republished to `events`.",
        "",
        "| event | wire name | decided by | key | carries | meaning |",
        "|---|---|---|---|---|---|",
    ]
    lines += [event_row(name) for name in sorted(EVENTS)]
    lines += ["", "| command | wire name | answered by | topic | carries | meaning |"]
    lines += ["|---|---|---|---|---|---|"]
    lines += [command_row(name) for name in sorted(COMMANDS)]
    lines += ["", "Services that append `InputRejected` for an undecodable record of a topic:", ""]
    lines += [f"- `{topic}`: {service}" for topic, service in sorted(CUSTODIAN.items())]
    return "\n".join(lines) + "\n"


def fields(model: type[BaseModel]) -> str:
    return ", ".join(f"`{name}`" for name in model.model_fields)


def event_row(name: str) -> str:
    cls = EVENTS[name]
    kind = "" if cls.PUBLIC else " *(internal)*"
    owners = ", ".join(cls.LEDGERS)
    return (
        f"| {cls.__name__}{kind} | `{name}` | {owners} | `{cls.SUBJECT}` "
        f"| {fields(cls)} | {summary(cls)} |"
    )


def command_row(name: str) -> str:
    cls = COMMANDS[name]
    return (
        f"| {cls.__name__} | `{name}` | {cls.OWNER} | `{command_topic(cls.OWNER)}` "
        f"| {fields(cls)} | {summary(cls)} |"
    )


def render() -> dict[str, str]:
    """Return the content of every generated file by its path from the project's root."""
    files = {
        f"docs/contracts/schemas/{name}.json": dumps(schema(model))
        for name, model in wire_models().items()
    }
    files["docs/contracts/asyncapi.json"] = dumps(asyncapi())
    files["docs/events.md"] = vocabulary()
    files[agent_dataclasses.PATH] = agent_dataclasses.render()
    return files


def dumps(document: Json) -> str:
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def main() -> None:
    for path, text in render().items():
        target = ROOT / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


if __name__ == "__main__":
    main()
