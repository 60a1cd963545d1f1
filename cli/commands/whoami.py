"""`berth whoami`: the bearer of the key, as the API sees it."""

from __future__ import annotations

from cli.api.answers import api
from cli.input.arguments import AsJson, Data
from cli.text.output import emit, table
from cli.text.times import fields_of


def whoami(as_json: AsJson = False, data: Data = None) -> None:
    """Show whom the key or token names, its bounds, and the installation."""
    client = api(data)
    document = {"url": client.url, **client.get("/v1/whoami")}
    if as_json:
        emit(document)
        return
    # Operators and admins have no bounds, which would read as no rights.
    shown = {name: value for name, value in document.items() if (name, value) != ("may", None)}
    table(("FIELD", "VALUE"), fields_of(shown))
