"""Options shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Tls = Annotated[
    bool,
    typer.Option("--tls", help="Serve the APIs over TLS with a certificate of the stack's own CA."),
]
Data = Annotated[
    Path | None,
    typer.Option("--data", help="Data directory of the stack; defaults to the running one."),
]
