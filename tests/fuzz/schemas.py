"""Values from JSON Schemas as Pydantic writes them: valid ones, and ones that are hostile."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

Schema = dict[str, Any]

DEEPEST = 3
LONGEST = 6
LARGEST_FLOAT = 1e308
CHARACTERS = st.characters(codec="utf-8", exclude_characters="\x00")

HOSTILE_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 10**400, -0.0, 1e308),
    *(5e-324, "", " ", "\x00", "\ufeff", "a\x00b", "\u202e", "x" * 5000, "NaN", "Infinity"),
    *("../../etc", "'; DROP TABLE jobs; --", [], {}, [[[[]]]], {"": {}}, {"__proto__": 1}),
    *(["\x00"], [None]),
)
HOSTILE_JSON: tuple[bytes, ...] = (
    *(b"NaN", b"-Infinity", b"1e999", b"-1e999", b"9" * 5000, b"01", b"0x1", b"1.", b"'a'"),
    *(b'"\\ud800"', b'"\\udc00\\ud800"', b'"\xed\xa0\x80"', b'"\xff"', b'"\\u0000"', b'"\n"'),
    *(b'{"a":1,"a":2}', b"[" * 5000, b'{"a":' * 5000, b"[" * 500 + b"]" * 500, b""),
    *(b"\xef\xbb\xbf1", b'{"' + b"k" * (1 << 16) + b'":1}', b"[1,]", b"/**/1", b"undefined"),
    b"\x00",
)
"""JSON that Python's own encoder would not write."""
MARK = "\u2603 here \u2603"
MARKED = json.dumps(MARK).encode()


def valid(schema: Schema, root: Schema, depth: int = 0) -> SearchStrategy[Any]:
    """Values that obey the schema, as far as it goes: rules between fields are not in it."""
    if "$ref" in schema:
        return valid(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, depth)
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            rest = {k: v for k, v in schema.items() if k not in (union, "discriminator")}
            return st.one_of([valid({**rest, **option}, root, depth) for option in schema[union]])
    return _plain(schema, root, depth)


def _plain(schema: Schema, root: Schema, depth: int) -> SearchStrategy[Any]:
    match schema.get("type"):
        case "object":
            return _object(schema, root, depth)
        case "array":
            most = min(schema.get("maxItems", LONGEST), LONGEST if depth < DEEPEST else 1)
            least = schema.get("minItems", 0)
            items = valid(schema.get("items", {}), root, depth + 1)
            return st.lists(items, min_size=least, max_size=max(most, least))
        case "integer":
            least = schema.get("minimum", schema.get("exclusiveMinimum", -(2**63) - 1) + 1)
            return st.integers(
                least, schema.get("maximum", schema.get("exclusiveMaximum", 2**63) - 1)
            )
        case "number":
            return _number(schema)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case "string":
            return _string(schema)
        case _:
            return st.sampled_from([None, 1, "a", [], {}])


def _number(schema: Schema) -> SearchStrategy[float]:
    least: Any = schema.get("minimum", schema.get("exclusiveMinimum", -LARGEST_FLOAT))
    most: Any = schema.get("maximum", schema.get("exclusiveMaximum", LARGEST_FLOAT))
    return st.floats(
        float(least),
        float(most),
        allow_nan=False,
        exclude_min="exclusiveMinimum" in schema,
        exclude_max="exclusiveMaximum" in schema,
    )


def _string(schema: Schema) -> SearchStrategy[str]:
    least, most = schema.get("minLength", 0), min(schema.get("maxLength", 40), 40)
    if "pattern" not in schema:
        return st.text(CHARACTERS, min_size=least, max_size=max(most, least))
    texts = st.from_regex(schema["pattern"], fullmatch=True, alphabet=CHARACTERS)
    return texts.filter(lambda text: least <= len(text) <= schema.get("maxLength", 1000))


def _object(schema: Schema, root: Schema, depth: int) -> SearchStrategy[dict[str, Any]]:
    if "properties" in schema:
        known = {name: valid(part, root, depth + 1) for name, part in schema["properties"].items()}
        must = set(schema.get("required", ()))
        return st.fixed_dictionaries(
            {name: known[name] for name in known if name in must},
            optional={name: known[name] for name in known if name not in must},
        )
    patterns = schema.get("patternProperties")
    name_rule = {"pattern": next(iter(patterns))} if patterns else schema.get("propertyNames", {})
    more = next(iter(patterns.values())) if patterns else schema.get("additionalProperties", True)
    values = valid(more if isinstance(more, dict) else {}, root, depth + 1)
    names = valid({"type": "string", **name_rule}, root)
    return st.dictionaries(names, values, max_size=min(3, schema.get("maxProperties", 3)))


@st.composite
def hostile(draw: st.DrawFn, schema: Schema, root: Schema) -> bytes:
    """JSON, or nearly, that obeys the schema but for one place."""
    value = draw(valid(schema, root))
    path = draw(st.sampled_from(list(paths(value))))
    match draw(st.sampled_from(["value", "raw", "drop", "more", "cut", "bom"])):
        case "value":
            return dumped(changed(value, path, draw(st.sampled_from(HOSTILE_VALUES))))
        case "raw":
            marked = dumped(changed(value, path, MARK))
            return marked.replace(MARKED, draw(st.sampled_from(HOSTILE_JSON)))
        case "drop" if path:
            return dumped(dropped(value, path))
        case "more" if isinstance(value, dict):
            return dumped({**value, "tenant_id": "eve", "\x00": 1, "x" * 300: None})
        case "cut":
            raw = dumped(value)
            return raw[: draw(st.integers(0, len(raw)))]
        case _:
            return b"\xef\xbb\xbf" + dumped(value)


def paths(value: Any, at: tuple[Any, ...] = ()) -> Any:
    yield at
    inside = value.items() if isinstance(value, dict) else []
    for name, part in inside or (enumerate(value) if isinstance(value, list) else []):
        yield from paths(part, (*at, name))


def changed(value: Any, path: tuple[Any, ...], to: Any) -> Any:
    if not path:
        return to
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(copy[path[0]], path[1:], to)
    return copy


def dropped(value: Any, path: tuple[Any, ...]) -> Any:
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = dropped(copy[path[0]], path[1:])
    return copy


def dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True).encode()
