"""`berth whoami`: the bearer of the key, as the API sees it."""

from __future__ import annotations

from cli.api.answers import api
from cli.input.arguments import AsJson, Data
from cli.text.output import emit, table
from cli.text.times import field_text, label


def whoami(as_json: AsJson = False, data: Data = None) -> None:
    """Show whom the key or token names: principal, role, tenant, and the installation."""
    client = api(data)
    document = {"url": client.url, **client.get("/v1/whoami")}
    if as_json:
        emit(document)
        return
    table(
        ("FIELD", "VALUE"), ((label(name), field_text(name, document[name])) for name in document)
    )
