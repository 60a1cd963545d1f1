"""Clocks, memory errors and links of GPUs, from the driver's library NVML where there is one.

A node installs no library, so the few calls are made through `ctypes`. A value that a GPU or an
older driver does not have is None; nothing here raises.
"""

from __future__ import annotations

import ctypes

from berth_agent.messages import GpuReading

LIBRARY = "libnvidia-ml.so.1"
SUCCESS = 0
CLOCK_SM = 1
UNCORRECTED, SINCE_DRIVER = 1, 0
"""Type of memory errors, and the count since the driver was loaded."""
MOST_GPUS = 64
SLOWDOWNS = {
    0x04: "power_cap",
    0x08: "hardware",
    0x10: "sync_boost",
    0x20: "heat",
    0x40: "heat",
    0x80: "power_brake",
}
"""Bits of the reasons for low clocks; that of an idle GPU, 0x01, is none to name."""


class Nvml:
    """The library, opened once; without a driver there are no GPUs."""

    def __init__(self, library: str = LIBRARY) -> None:
        self._library: ctypes.CDLL | None = None
        try:
            opened = ctypes.CDLL(library)
            if opened.nvmlInit_v2() == SUCCESS:
                self._library = opened
        except (OSError, AttributeError):
            return

    def readings(self) -> tuple[GpuReading, ...]:
        """Return a reading of each GPU; one that has fallen off the bus is left out."""
        count = self._number("nvmlDeviceGetCount_v2") or 0
        return tuple(
            self._reading(gpu, handle)
            for gpu in range(min(count, MOST_GPUS))
            if (handle := self._handle(gpu)) is not None
        )

    def _reading(self, gpu: int, handle: ctypes.c_void_p) -> GpuReading:
        sm = ctypes.c_int(CLOCK_SM)
        kinds = (ctypes.c_int(UNCORRECTED), ctypes.c_int(SINCE_DRIVER))
        return GpuReading(
            gpu=gpu,
            sm_mhz=self._number("nvmlDeviceGetClockInfo", handle, sm),
            most_sm_mhz=self._number("nvmlDeviceGetMaxClockInfo", handle, sm),
            slowdowns=slowdowns_of(self._reasons(handle)),  # type: ignore[arg-type]
            uncorrected_errors=self._large("nvmlDeviceGetTotalEccErrors", handle, *kinds),
            pcie_width=self._number("nvmlDeviceGetCurrPcieLinkWidth", handle),
            most_pcie_width=self._number("nvmlDeviceGetMaxPcieLinkWidth", handle),
            pcie_generation=self._number("nvmlDeviceGetCurrPcieLinkGeneration", handle),
            most_pcie_generation=self._number("nvmlDeviceGetMaxPcieLinkGeneration", handle),
        )

    def _reasons(self, handle: ctypes.c_void_p) -> int:
        """Return the bits of the reasons, by the name of newer or of older drivers."""
        present = self._large("nvmlDeviceGetCurrentClocksEventReasons", handle)
        if present is None:
            present = self._large("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        return present or 0

    def _handle(self, gpu: int) -> ctypes.c_void_p | None:
        handle = ctypes.c_void_p()
        index = ctypes.c_uint(gpu)
        name = "nvmlDeviceGetHandleByIndex_v2"
        return handle if self._call(name, index, ctypes.byref(handle)) else None

    def _number(self, name: str, *arguments: object) -> int | None:
        value = ctypes.c_uint()
        return int(value.value) if self._call(name, *arguments, ctypes.byref(value)) else None

    def _large(self, name: str, *arguments: object) -> int | None:
        value = ctypes.c_ulonglong()
        known = self._call(name, *arguments, ctypes.byref(value))
        return int(value.value) if known and value.value < 2**53 else None

    def _call(self, name: str, *arguments: object) -> bool:
        """Whether the library has the function and it succeeded."""
        function = getattr(self._library, name, None) if self._library else None
        return function is not None and function(*arguments) == SUCCESS


def slowdowns_of(bits: int) -> tuple[str, ...]:
    """Return the reasons by name, each once."""
    return tuple(dict.fromkeys(name for bit, name in SLOWDOWNS.items() if bits & bit))
