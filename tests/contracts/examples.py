"""Generate the first fixture of a new message: `python -m tests.contracts.examples`.

A fixture is written once and never changed: it represents the records of that version in ledgers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from shared.contracts.generate import wire_models

FIXTURES = Path(__file__).parent / "fixtures"
TEXTS = {
    "JobId": "9b2f7a10-6c1e-5f0a-8d52-0f4f3f1f7c11",
    "url": "http://127.0.0.1:8000",
    "if_version": "absent",
    "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "credential_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "presented_sha256": "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
    "terminal_id": "0af7651916cd43dd8448eb211c80319c",
    "token_sha256": "4e07408562bedb8b60ce05c1decfe3ad16b72230967de01f640b7e4729b49fce",
    "allocation_id": "0/17/2/0",
    "input_id": "placement/0/17/2",
    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
}


def example(schema: dict[str, Any], root: dict[str, Any], name: str = "") -> Any:
    """Return a valid value of a JSON Schema of Pydantic, with every field."""
    if "$ref" in schema:
        return example(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, name)
    for choice in ("const", "default"):
        if choice in schema and schema[choice] not in (None, "", [], {}):
            return schema[choice]
    if "enum" in schema:
        return schema["enum"][0]
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return example({**schema[union][0], **without(schema, union)}, root, name)
    return plain(schema, root, name)


def without(schema: dict[str, Any], union: str) -> dict[str, Any]:
    return {k: v for k, v in schema.items() if k not in (union, "default", "title", "description")}


def plain(schema: dict[str, Any], root: dict[str, Any], name: str) -> Any:
    match schema.get("type"):
        case "object" if "properties" in schema:
            return {k: example(v, root, k) for k, v in schema["properties"].items()}
        case "object":
            return {"key": example(schema.get("additionalProperties", {}), root, name)}
        case "array":
            return [example(schema["items"], root, name)]
        case "integer":
            return max(2, int(schema.get("minimum", 2)))
        case "number":
            least = float(schema.get("minimum", schema.get("exclusiveMinimum", 0)))
            return min(max(1.5, least), float(schema.get("maximum", "inf")))
        case "boolean":
            return True
        case _:
            return TEXTS.get(name, f"{name.replace('_', '-')}-1" if name else "value-1")


def fixture(model: type[BaseModel]) -> str:
    schema = model.model_json_schema()
    value = example(schema, schema)
    if "spec" in value:
        value["spec"]["gang"] = {"workers": 2, "gpus_per_worker": 4.0}
    if "gang" in value:
        value["gang"] = {"workers": 2, "gpus_per_worker": 4.0}
    dumped = model.model_validate(value).model_dump(mode="json", exclude_none=True)
    return json.dumps(dumped, indent=1, sort_keys=True) + "\n"


def main() -> None:
    for name, model in wire_models().items():
        path = FIXTURES / f"{name}.json"
        if not path.exists():
            path.write_text(fixture(model))


if __name__ == "__main__":
    main()
