"""`python -m services.cli` is `berth`."""

from __future__ import annotations

from services.cli.main import app

if __name__ == "__main__":
    app()
