"""`python -m tests.replay.record`: play the day and store the calls of each decider.

Run it when a decision is meant to change: the difference of the golden files shows that it was.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.replay.golden import FOLDER, path_of, write
from tests.replay.workload import played


def main(folder: Path = FOLDER) -> None:
    for ledger, cell in played().lanes.items():
        write(path_of(ledger, folder), cell.calls, cell.state)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
