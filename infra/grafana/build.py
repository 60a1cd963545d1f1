"""`python -m infra.grafana.build`: write the dashboards' JSON."""

from __future__ import annotations

import json
from pathlib import Path

from infra.grafana.boards.bus import BUS
from infra.grafana.boards.failslow import FAILSLOW
from infra.grafana.boards.llm import LLM
from infra.grafana.boards.overview import OVERVIEW
from infra.grafana.boards.placement import PLACEMENT
from infra.grafana.boards.queue import QUEUE
from infra.grafana.panels import rendered

BOARDS = (OVERVIEW, QUEUE, PLACEMENT, FAILSLOW, LLM, BUS)
"""In the order of the list of dashboards."""
FOLDER = Path(__file__).parent / "dashboards"


def files() -> dict[str, str]:
    """Return the JSON text of each dashboard by name."""
    return {
        f"{board.uid}.json": json.dumps(rendered(board), indent=1, sort_keys=True) + "\n"
        for board in BOARDS
    }


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    desired = files()
    for old in FOLDER.glob("*.json"):
        if old.name not in desired:
            old.unlink()
    for name, text in desired.items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
