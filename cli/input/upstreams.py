"""`--upstream NAME=URL[,model=M][,key=SECRET][,max_requests=N][,weight=W]` as settings."""

from __future__ import annotations

from collections.abc import Sequence

from cli.errors import BadInput

Document = dict[str, object]

FORM = "NAME=URL[,model=M][,key=SECRET][,max_requests=N][,weight=W]"
NUMBERS = {"max_requests": int, "weight": float}
FIELDS = ("model", "key", *NUMBERS)


def parse_upstream(text: str) -> Document:
    """Return an upstream as a document; its rules are those of the endpoint. Raises BadInput."""
    name, sign, rest = text.partition("=")
    url, *more = rest.split(",")
    if not (name and sign and url):
        raise BadInput(f"upstream: {text!r}; {FORM} is allowed")
    if url.rstrip("/").endswith("/v1"):
        raise BadInput(f"upstream {name}: {url!r}; the address without /v1 is allowed")
    upstream: Document = {"name": name, "url": url}
    for word in more:
        field, _, value = word.partition("=")
        if field not in FIELDS or not value or field in upstream:
            rule = f"one of {', '.join(FIELDS)}, each once and with a value, is allowed"
            raise BadInput(f"upstream {name}: {word!r}; {rule}")
        upstream[field] = _number(name, field, value) if field in NUMBERS else value
    return upstream


def _number(name: str, field: str, value: str) -> object:
    try:
        return NUMBERS[field](value)
    except ValueError:
        raise BadInput(f"upstream {name}: {field}: {value!r}; a number is allowed") from None


def changed_upstreams(
    before: Sequence[Document], added: Sequence[str], removed: Sequence[str] = ()
) -> list[Document]:
    """Return the upstreams with those given added or replaced. Raises BadInput."""
    upstreams = {str(upstream["name"]): upstream for upstream in before}
    for name in removed:
        if upstreams.pop(name, None) is None:
            known = ", ".join(upstreams) or "none, since it has no upstreams,"
            raise BadInput(f"no such upstream: {name}; {known} is allowed")
    named = [parse_upstream(text) for text in added]
    for upstream in named:
        if sum(other["name"] == upstream["name"] for other in named) > 1:
            raise BadInput(f"given twice: upstream {upstream['name']}; one of each is allowed")
        upstreams[str(upstream["name"])] = upstream
    return list(upstreams.values())
