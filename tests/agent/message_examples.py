"""Random messages of the contract between executors and agents, from its JSON Schemas."""

from __future__ import annotations

import math
import re
from typing import Any

from hypothesis import strategies as st

from shared.contracts.agent_dataclasses import Schema

INTEGERS = 2**53


def messages(schema: Schema) -> st.SearchStrategy[dict[str, Any]]:
    """Return JSON objects that satisfy the schema of a message; optional fields may lack."""
    return _values(schema, schema.get("$defs", {}))


def _values(rule: Schema, definitions: dict[str, Schema]) -> st.SearchStrategy[Any]:
    match rule:
        case {"$ref": str(ref)}:
            return _values(definitions[ref.rsplit("/", 1)[1]], definitions)
        case {"anyOf": list(rules)} | {"oneOf": list(rules)}:
            return st.one_of(*(_values(r, definitions) for r in rules))
        case {"const": value}:
            return st.just(value)
        case {"enum": list(values)}:
            return st.sampled_from(values)
        case {"type": "array", "items": inner}:
            most = min(rule.get("maxItems", 3), 3)
            return st.lists(_values(inner, definitions), max_size=most)
        case {"type": "object", "properties": dict(properties)}:
            return _objects(properties, frozenset(rule.get("required", ())), definitions)
        case {"type": "object", "patternProperties": dict(patterns)}:
            [(pattern, inner)] = patterns.items()
            names = _strings({"pattern": pattern})
            return st.dictionaries(names, _values(inner, definitions), max_size=3)
        case {"type": "object", "additionalProperties": inner}:
            return st.dictionaries(st.text(max_size=9), _values(inner, definitions), max_size=3)
        case _:
            return _plain(rule)


def _objects(
    properties: dict[str, Schema], required: frozenset[str], definitions: dict[str, Schema]
) -> st.SearchStrategy[dict[str, Any]]:
    """Fields named `kind` are always there: they tell the messages of a union apart."""
    fields = {name: _values(rule, definitions) for name, rule in properties.items()}
    always = {n: s for n, s in fields.items() if n in required or n == "kind"}
    return st.fixed_dictionaries(
        always, optional={n: s for n, s in fields.items() if n not in always}
    )


def _plain(rule: Schema) -> st.SearchStrategy[Any]:
    match rule["type"]:
        case "integer":
            most = rule.get("maximum", rule.get("exclusiveMaximum", INTEGERS + 1) - 1)
            return st.integers(rule.get("minimum", -INTEGERS), most)
        case "number":
            above = rule.get("exclusiveMinimum")
            least = rule.get("minimum", -1e9) if above is None else math.nextafter(above, math.inf)
            return st.floats(least, rule.get("maximum", 1e9))
        case "string":
            return _strings(rule)
        case "boolean":
            return st.booleans()
        case _:
            return st.none()


def _strings(rule: Schema) -> st.SearchStrategy[str]:
    least, most = rule.get("minLength", 0), rule.get("maxLength", 40)
    if "pattern" in rule:
        matching = st.from_regex(re.compile(rule["pattern"], re.ASCII), fullmatch=True)
        return matching.filter(lambda value: least <= len(value) <= rule.get("maxLength", 10**9))
    return st.text(min_size=least, max_size=min(most, 40))
