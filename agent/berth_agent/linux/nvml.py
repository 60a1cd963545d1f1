"""Clocks, errors, rows, links and MIG of GPUs, from the driver's library NVML where there is one.

A node installs no library, so the few calls are made through `ctypes`. A value that a GPU or an
older driver does not have is None; nothing here raises.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

from berth_agent.core.gpu_inventory import profile_in
from berth_agent.messages import GpuReading

LIBRARY = "libnvidia-ml.so.1"
SUCCESS = 0
CLOCK_SM = 1
UNCORRECTED, SINCE_DRIVER = 1, 0
"""Type of memory errors, and the count since the driver was loaded."""
MOST_GPUS = 64
MOST_NVLINKS = 18
TEXT_BYTES = 96
"""As the library requires."""
XID_ERRORS = 0x08
"""Type of the events of critical errors."""
MOST_EVENTS = 256
XIDS_KEPT = 8
MIG_ON = 1
SLOWDOWNS = {
    0x04: "power_cap",
    0x08: "hardware",
    0x10: "sync_boost",
    0x20: "heat",
    0x40: "heat",
    0x80: "power_brake",
}
"""Bits of the reasons for low clocks; that of an idle GPU, 0x01, is none to name."""


class Event(ctypes.Structure):
    """An event of the library, `nvmlEventData_t`."""

    _fields_ = (
        ("device", ctypes.c_void_p),
        ("kind", ctypes.c_ulonglong),
        ("data", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class Nvml:
    """The library, opened once; without a driver there are no GPUs."""

    def __init__(self, library: str = LIBRARY) -> None:
        self._library: ctypes.CDLL | None = None
        self._events: ctypes.c_void_p | None = None
        self._gpus: dict[int | None, int] = {}
        """Number of a GPU by its handle, of those whose events are waited for."""
        self._xids: dict[int, tuple[int, ...]] = {}
        try:
            opened = ctypes.CDLL(library)
            if opened.nvmlInit_v2() == SUCCESS:
                self._library = opened
        except (OSError, AttributeError):
            return

    def readings(self) -> tuple[GpuReading, ...]:
        """Return a reading of each GPU that the driver lists, and its errors so far."""
        count = min(self._number("nvmlDeviceGetCount_v2") or 0, MOST_GPUS)
        handles = {gpu: self._handle(gpu) for gpu in range(count)}
        self._wait_for_errors(handles)
        self._take_errors()
        return tuple(
            GpuReading(gpu=gpu, lost=True, xids=self._xids.get(gpu, ()))
            if handle is None
            else self._reading(gpu, handle)
            for gpu, handle in handles.items()
        )

    def _wait_for_errors(self, handles: Mapping[int, ctypes.c_void_p | None]) -> None:
        """Have the driver keep the critical errors of these GPUs from now on."""
        if self._events is None:
            events = ctypes.c_void_p()
            if not self._call("nvmlEventSetCreate", ctypes.byref(events)):
                return
            self._events = events
        kinds = ctypes.c_ulonglong(XID_ERRORS)
        for gpu, handle in handles.items():
            if handle is None or handle.value in self._gpus:
                continue
            if self._call("nvmlDeviceRegisterEvents", handle, kinds, self._events):
                self._gpus[handle.value] = gpu

    def _take_errors(self) -> None:
        """Take the errors that the driver has kept, without waiting for others."""
        event, at_once = Event(), ctypes.c_uint(0)
        for _ in range(MOST_EVENTS if self._events is not None else 0):
            if not self._call("nvmlEventSetWait_v2", self._events, ctypes.byref(event), at_once):
                return
            gpu = self._gpus.get(event.device)
            if gpu is not None and event.kind == XID_ERRORS:
                known = [xid for xid in self._xids.get(gpu, ()) if xid != event.data]
                self._xids[gpu] = (*known, int(event.data))[-XIDS_KEPT:]

    def _text(self, function: str, handle: ctypes.c_void_p) -> str:
        text = ctypes.create_string_buffer(TEXT_BYTES)
        known = self._call(function, handle, text, ctypes.c_uint(TEXT_BYTES))
        return text.value.decode(errors="replace") if known else ""

    def _mig_instances(self, handle: ctypes.c_void_p) -> list[tuple[str, str]] | None:
        """Return UUID and name of each instance of a GPU; None: MIG is off or unknown."""
        present, pending = ctypes.c_uint(), ctypes.c_uint()
        places = (ctypes.byref(present), ctypes.byref(pending))
        if not self._call("nvmlDeviceGetMigMode", handle, *places) or present.value != MIG_ON:
            return None
        most = self._number("nvmlDeviceGetMaxMigDeviceCount", handle) or 0
        instance, instances = ctypes.c_void_p(), list[tuple[str, str]]()
        by_index = "nvmlDeviceGetMigDeviceHandleByIndex"
        for number in range(min(most, MOST_GPUS)):
            if self._call(by_index, handle, ctypes.c_uint(number), ctypes.byref(instance)):
                uuid = self._text("nvmlDeviceGetUUID", instance)
                instances.append((uuid, self._text("nvmlDeviceGetName", instance)))
        return instances

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
        instances = self._mig_instances(handle)
        named = [(uuid, name) for uuid, name in instances or () if uuid]
        return GpuReading(
            gpu=gpu,
            uuid=self._text("nvmlDeviceGetUUID", handle),
            name=self._text("nvmlDeviceGetName", handle),
            mig_instances=None if instances is None else len(instances),
            mig_uuids=tuple(uuid for uuid, _ in named),
            mig_profiles=tuple(profile_in(name) for _, name in named),
            xids=self._xids.get(gpu, ()),
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
