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
NodeArgument = Annotated[str, typer.Argument(help="Node id.", metavar="NODE")]
Reason = Annotated[str, typer.Option(help="Reason, recorded in the audit log.")]
PoolOfObject = Annotated[
    str | None, typer.Option(help="Pool; needed while the read models are unavailable.")
]
OnlyPool = Annotated[str | None, typer.Option(help="Filter by pool.")]
Limit = Annotated[int, typer.Option(min=1, help="Maximum number of rows.")]
Data = Annotated[
    Path | None,
    typer.Option("--data", help="Data directory of the stack; defaults to the running one."),
]
