"""The errors of GPUs outlast the agent that saw them, and not the boot."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from berth_agent import file_names
from berth_agent.core.gpu_health import IN_A_ROW
from berth_agent.messages import GpuReading
from berth_agent.node.config import Config
from berth_agent.node.system.gpu_memory import GpuMemory
from berth_agent.node.system.inventory import Inventory
from tests.agent.nvml_library import compiled

WELL = GpuReading(gpu=0, uuid="GPU-a0", sm_mhz=1980, most_sm_mhz=1980)
FAILED = GpuReading(gpu=0, uuid="GPU-a0", xids=(79,))
HOT = GpuReading(gpu=0, uuid="GPU-a0", sm_mhz=900, most_sm_mhz=1980, slowdowns=("heat",))
FALLEN = "GPU 0 (GPU-a0): Xid 79, it has fallen off the bus"
KILLED = """
import os, signal, sys
from berth_agent.linux.nvml import Nvml
from berth_agent.node.config import Config
from berth_agent.node.system.gpu_memory import GpuMemory
from berth_agent.node.system.inventory import Inventory
from berth_agent.node.system.measuring import Measuring

config = Config(run=sys.argv[1])
memory = GpuMemory(config, "boot", Inventory(config))
Measuring(1.0, lambda: False, Nvml(sys.argv[2]), memory.note).measure()
os.kill(os.getpid(), signal.SIGKILL)
"""


def an_agent(run: Path, boot_id: str = "boot") -> GpuMemory:
    config = Config(run=str(run))
    return GpuMemory(config, boot_id, Inventory(config))


def test_the_next_agent_of_the_boot_knows_the_error_that_the_driver_gives_once(
    tmp_path: Path,
) -> None:
    an_agent(tmp_path).note((FAILED,))
    again = an_agent(tmp_path)
    assert again.health.conditions.fault is None, "there is no condition before a reading"
    assert [reading.xids for reading in again.note((WELL,))] == [(79,)]
    assert again.health.conditions.fault == FALLEN


def test_a_slow_gpu_is_well_only_after_readings_in_a_row_also_over_a_restart(
    tmp_path: Path,
) -> None:
    first = an_agent(tmp_path)
    for _ in range(IN_A_ROW):
        first.note((HOT,))
    again = an_agent(tmp_path)
    for _ in range(IN_A_ROW - 1):
        again.note((WELL,))
        assert again.health.conditions.slow == "GPU 0 (GPU-a0) is slowed down by heat, " + (
            "900 of 1980 MHz"
        )
    again.note((WELL,))
    assert again.health.conditions.slow == ""
    last = an_agent(tmp_path)
    last.note((WELL,))
    assert last.health.conditions.slow == ""


def test_another_boot_and_another_gpu_begin_anew(tmp_path: Path) -> None:
    an_agent(tmp_path).note((FAILED,))
    rebooted = an_agent(tmp_path, "other")
    assert rebooted.note((WELL,)) == (WELL,)
    replaced = an_agent(tmp_path)
    other = GpuReading(gpu=0, uuid="GPU-z9")
    assert replaced.note((other,)) == (other,)
    assert replaced.health.conditions.fault == ""


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"boot_id": "boot"}', '{"boot_id": "boot", "gpus": [{"gpu": "x"}]}']
)
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / file_names.GPUS).write_text(content)
    memory = an_agent(tmp_path)
    memory.note((FAILED,))
    [entry] = json.loads((tmp_path / file_names.GPUS).read_text())["gpus"]
    assert entry == {"gpu": 0, "uuid": "GPU-a0", "xids": [79], "slow": ""}


def test_where_the_file_cannot_be_written_the_reading_counts_and_is_written_later(
    tmp_path: Path,
) -> None:
    run = tmp_path / "later"
    memory = an_agent(run)
    memory.note((FAILED,))
    assert memory.health.conditions.fault == FALLEN
    run.mkdir()
    memory.note((WELL,))
    assert (run / file_names.GPUS).exists()


@pytest.mark.process
def test_an_agent_that_was_killed_leaves_the_errors_of_the_driver(tmp_path: Path) -> None:
    library = compiled(tmp_path)
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), library], check=False)
    assert done.returncode == -9
    again = an_agent(tmp_path)
    again.note((GpuReading(gpu=0), GpuReading(gpu=1)))
    assert again.health.conditions.fault == "GPU 1: Xid 74, an NVLink error"
