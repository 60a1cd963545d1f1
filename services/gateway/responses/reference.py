"""The API reference as one HTML page, made from the OpenAPI document; it loads nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

Json = Mapping[str, Any]
PROBES = "probes"
HEAD = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Berth API</title><style>
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;
color:#222;background:#fff}h2{margin-top:2rem;border-bottom:1px solid #ccc}
summary{cursor:pointer;padding:.2rem 0}details{border-bottom:1px solid #eee}
code{font-family:ui-monospace,monospace;font-size:.93em;overflow-wrap:anywhere}
table{border-collapse:collapse;margin:.5rem 0}
td,th{text-align:left;vertical-align:top;padding:.15rem .8rem .15rem 0}.method{display:inline-block;
width:4.5rem;font-weight:600}nav a{margin-right:1rem}
.about{opacity:.75;margin-left:.8rem}details[open] .about{display:none}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}a{color:#8cb4ff}
h2,details{border-color:#333}}
</style>"""


def render(document: Json) -> str:
    """Return the page: routes by tag, then the types of bodies and answers."""
    groups: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tag = operation.get("tags", ["other"])[0]
            groups.setdefault(tag, []).append(_operation(method.upper(), path, operation))
    # Probes are for machines, and so come last.
    groups = dict(sorted(groups.items(), key=lambda group: group[0] == PROBES))
    schemas = document["components"]["schemas"]
    sections = [_section(tag, parts) for tag, parts in groups.items()]
    sections.append(_section("types", [_type(name, schemas[name]) for name in sorted(schemas)]))
    links = " ".join(f'<a href="#{escape(tag)}">{escape(tag)}</a>' for tag in (*groups, "types"))
    return (
        f"{HEAD}<h1>Berth API</h1><p>{_text(document['info']['description'])}</p>"
        "<p>Every request but those of <code>probes</code> has the header "
        "<code>Authorization: Bearer KEY</code>. The same is in the "
        f'<a href="/openapi.json">OpenAPI document</a>.</p><nav>{links}</nav>'
        f"{''.join(sections)}</html>"
    )


def _section(title: str, parts: Iterable[str]) -> str:
    return f'<h2 id="{escape(title)}">{escape(title)}</h2>{"".join(parts)}'


def _operation(method: str, path: str, operation: Json) -> str:
    parameters = [
        (item["name"], _kind(item["schema"]), item.get("description", ""))
        for item in operation.get("parameters", ())
    ]
    answers = [
        (status, _media(answer.get("content", {})), answer.get("description", ""))
        for status, answer in operation["responses"].items()
    ]
    body, text = operation.get("requestBody"), operation.get("description", "")
    first = re.split(r"[.;:](?:\s|$)", text, maxsplit=1)[0]
    return (
        f'<details><summary><span class="method">{method}</span>'
        f'<code>{escape(path)}</code><span class="about">{_text(first)}</span></summary>'
        f"<p>{_text(text)}</p>"
        + (_table("parameter", parameters) if parameters else "")
        + (f"<p>Body: {_media(body['content'])}</p>" if body else "")
        + f"{_table('status', answers)}</details>"
    )


def _type(name: str, schema: Json) -> str:
    required = schema.get("required", ())
    fields = [
        (field if field in required else f"{field}?", _kind(kind), kind.get("description", ""))
        for field, kind in schema.get("properties", {}).items()
    ]
    return (
        f'<details id="type-{escape(name)}"><summary><code>{escape(name)}</code></summary>'
        f"<p>{_text(schema.get('description', ''))}</p>{_table('field', fields)}</details>"
    )


def _table(title: str, rows: Iterable[tuple[str, str, str]]) -> str:
    """Return a table of rows with name, HTML and description."""
    lines = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{kind}</td><td>{_text(text)}</td></tr>"
        for name, kind, text in rows
    )
    return f"<table><tr><th>{title}</th><th>type</th><th></th></tr>{lines}</table>"


def _media(content: Json) -> str:
    return ", ".join(
        f"{_kind(media['schema'])}" if "schema" in media else escape(name)
        for name, media in content.items()
    )


def _kind(schema: Json) -> str:
    """Return the type in HTML, with a link to one that has a name."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#type-{name}">{name}</a>'
    if options := schema.get("anyOf"):
        return " or ".join(_kind(option) for option in options)
    if values := schema.get("enum"):
        return ", ".join(f"<code>{escape(str(value))}</code>" for value in values)
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return escape(str(kind))


def _text(text: str) -> str:
    """Return a description in HTML: its paragraphs, and code between backticks."""
    marked = re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))
    return marked.replace("\n\n", "<br><br>")
