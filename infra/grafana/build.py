"""`python -m infra.grafana.build`: write the dashboards' JSON."""

from __future__ import annotations

import json
from pathlib import Path

from infra.grafana.boards import BOARDS
from infra.grafana.panels import rendered

FOLDER = Path(__file__).parent / "dashboards"


def files() -> dict[str, str]:
    """Return the JSON text of each dashboard by name."""
    return {
        f"{board.uid}.json": json.dumps(rendered(board), indent=1, sort_keys=True) + "\n"
        for board in BOARDS
    }


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    wanted = files()
    for old in FOLDER.glob("*.json"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
