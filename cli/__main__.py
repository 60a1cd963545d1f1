"""`python -m cli` is `berth`."""

from __future__ import annotations

from cli.main import app

if __name__ == "__main__":
    app()
