"""Options that several commands have, spelled the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Tls = Annotated[
    bool, typer.Option("--tls", help="The APIs speak TLS, by a certificate of the stack's own CA.")
]
Data = Annotated[
    Path | None,
    typer.Option("--data", help="Folder of the stack; default: the one that runs here."),
]
