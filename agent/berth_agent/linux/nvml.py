"""Clocks, memory errors, rows and links of GPUs, from the driver's library NVML where there is one.

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
MOST_NVLINKS = 18
UUID_BYTES = 96
"""As the library requires."""
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

    def _uuid(self, handle: ctypes.c_void_p) -> str:
        text = ctypes.create_string_buffer(UUID_BYTES)
        length = ctypes.c_uint(UUID_BYTES)
        known = self._call("nvmlDeviceGetUUID", handle, text, length)
        return text.value.decode(errors="replace") if known else ""

    def _nvlinks(self, handle: ctypes.c_void_p) -> tuple[int | None, int | None]:
        """Return the links, and those that are down; of a GPU on its own none is up."""
        name = "nvmlDeviceGetNvLinkState"
        states = (self._number(name, handle, ctypes.c_uint(n)) for n in range(MOST_NVLINKS))
        known = [state for state in states if state is not None]
        return (len(known), known.count(0)) if any(known) else (None, None)

    def _rows(self, handle: ctypes.c_void_p) -> tuple[bool | None, bool | None]:
        """Return whether memory rows wait for a reset, and whether one could not be replaced."""
        counts = [ctypes.c_uint() for _ in range(4)]
        if not self._call("nvmlDeviceGetRemappedRows", handle, *map(ctypes.byref, counts)):
            return None, None
        return bool(counts[2].value), bool(counts[3].value)

    def _reading(self, gpu: int, handle: ctypes.c_void_p) -> GpuReading:
        sm = ctypes.c_int(CLOCK_SM)
        kinds = (ctypes.c_int(UNCORRECTED), ctypes.c_int(SINCE_DRIVER))
        nvlinks, nvlinks_down = self._nvlinks(handle)
        rows_pending, rows_failed = self._rows(handle)
        return GpuReading(
            gpu=gpu,
            uuid=self._uuid(handle),
            nvlinks=nvlinks,
            nvlinks_down=nvlinks_down,
            rows_pending=rows_pending,
            rows_failed=rows_failed,
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
        """Return whether the library has the function and it succeeded."""
        function = getattr(self._library, name, None) if self._library else None
        return function is not None and function(*arguments) == SUCCESS


def slowdowns_of(bits: int) -> tuple[str, ...]:
    """Return the reasons by name, each once."""
    return tuple(dict.fromkeys(name for bit, name in SLOWDOWNS.items() if bits & bit))
