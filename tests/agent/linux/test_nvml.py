"""GPUs are read through the driver's library: here a made-up one, as no GPU is at hand."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from berth_agent.linux.nvml import Nvml, slowdowns_of
from berth_agent.messages import GpuReading
from shared.contracts.measurements import GpuReading as Contract
from tests.agent.nvml_library import compiled

pytestmark = pytest.mark.process


@pytest.fixture(scope="module", name="library")
def library_fixture(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled(tmp_path_factory.mktemp("nvml"))


def test_each_gpu_is_read(library: str) -> None:
    well, hot, lost = Nvml(library).readings()
    assert well == GpuReading(
        gpu=0,
        sm_mhz=1980,
        most_sm_mhz=1980,
        uncorrected_errors=7,
        pcie_width=16,
        most_pcie_width=16,
        pcie_generation=5,
        uuid="GPU-1a2b",
        name="NVIDIA A100-SXM4-40GB",
        nvlinks=2,
        nvlinks_down=0,
    )
    assert (hot.gpu, hot.sm_mhz, hot.most_sm_mhz) == (1, 1200, 1980)
    assert hot.slowdowns == ("power_cap", "heat")
    assert (hot.uncorrected_errors, hot.pcie_width) == (None, 8)
    assert (hot.nvlinks, hot.nvlinks_down, hot.uuid) == (2, 1, "")
    assert (hot.rows_pending, hot.rows_failed) == (False, True)
    assert (hot.name, hot.mig_instances) == ("NVIDIA H100 80GB HBM3", 2)
    assert hot.mig_uuids == ("MIG-0a", "MIG-3b")
    assert hot.mig_profiles == ("1g.10gb", "1g.10gb")
    assert lost == GpuReading(gpu=2, lost=True)


def test_errors_are_taken_once_from_the_driver_and_kept(library: str, tmp_path: Path) -> None:
    # A copy: the library counts in its own memory what it has handed out.
    own = shutil.copy(library, tmp_path / "libnvidia-ml.so.1")
    nvml = Nvml(str(own))
    for _ in range(2):
        assert [reading.xids for reading in nvml.readings()] == [(), (31, 74), ()]


def test_readings_are_messages_of_the_contract(library: str) -> None:
    for reading in Nvml(library).readings():
        Contract.model_validate(reading.to_json())


@pytest.mark.parametrize("library", ["libnvidia-ml.so.none", "libc.so.6"])
def test_without_the_drivers_library_there_are_no_gpus(library: str) -> None:
    assert Nvml(library).readings() == ()


@pytest.mark.parametrize(
    ("bits", "names"), [(0, ()), (0x01, ()), (0x60, ("heat",)), (0x88, ("hardware", "power_brake"))]
)
def test_bits_are_reasons(bits: int, names: tuple[str, ...]) -> None:
    assert slowdowns_of(bits) == names
