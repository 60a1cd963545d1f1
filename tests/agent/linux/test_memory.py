"""Pages of files go, and come back when they are used; a page that was written to stays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from berth_agent.linux.memory import clean_file_mappings

AGENT = Path(__file__).parents[3] / "agent"
SMAPS = b"""\
1000-3000 r--p 00000000 fe:00 18710      /usr/lib/libx.so
Anonymous:             0 kB
3000-5000 r-xp 00002000 fe:00 18710      /usr/lib/lib with a space.so
Anonymous:             4 kB
5000-9000 r-xp 00004000 fe:00 18710      /usr/lib/lib with a space.so
Rss:                   8 kB
Anonymous:             0 kB
9000-a000 rw-p 00006000 fe:00 18710      /usr/lib/libx.so
Anonymous:             0 kB
a000-b000 r--p 00000000 00:00 0
Anonymous:             0 kB
b000-c000 r-xp 00000000 00:00 0          [vdso]
Anonymous:             0 kB
"""
RELEASES = """
import sys
sys.path.insert(0, {agent!r})
from berth_agent.linux.memory import release_file_pages
def file_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssFile:"))
before = file_kib()
release_file_pages()
after = file_kib()
import json, re, statistics
print(before, after, json.dumps(re.findall("[0-9]+", "12 and 3")))
"""


def test_only_mappings_of_files_that_were_not_and_cannot_be_written_are_released() -> None:
    assert clean_file_mappings(SMAPS.splitlines()) == [(0x2000, 0x1000), (0x4000, 0x5000)]


@pytest.mark.process
def test_a_process_goes_on_after_its_pages_were_released() -> None:
    command = [sys.executable, "-I", "-S", "-c", RELEASES.format(agent=str(AGENT))]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    before, after, numbers = done.stdout.split(maxsplit=2)
    assert int(after) < int(before)
    assert numbers == '["12", "3"]\n'
