"""Readings of GPUs as conditions of the node: what failed, what is slowed down, what differs. Pure.

A condition is a sentence, empty where there is none, and None until the GPUs were read. The Xid
errors that the driver has handed out, and what is slowed down, are in no counter of a GPU: `memory`
has them for the next process of this boot, which takes them up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from berth_agent.core.gpu_inventory import MigInstance, differences, numbers_of, profile_of
from berth_agent.messages import GpuReading

FATAL_XIDS = {
    48: "an uncorrectable memory error",
    62: "its microcontroller halted",
    64: "a memory row could not be replaced",
    74: "an NVLink error",
    79: "it has fallen off the bus",
    95: "an uncontained memory error",
    119: "its system processor does not answer",
    120: "its system processor failed",
    140: "unrecovered memory errors",
}
"""Errors after which NVIDIA requires a reset or service. Those of programs, as 13, 31 and 43, and
what the GPU has contained, as 63 and 94, are not among them."""
SLOWING = frozenset(("heat", "power_brake", "hardware"))
"""Reasons for low clocks that are no setting: a power cap and a sync boost group are one."""
SLOW_CLOCK = 0.75
"""Part of the highest clock below which a slowed GPU counts."""
IN_A_ROW = 5
"""Readings before a GPU counts as slowed down, and as well again."""
LONGEST = 512
XIDS_KEPT = 8
"""Xid errors of a GPU that are remembered, the latest."""


class Conditions(NamedTuple):
    """The conditions that heartbeats carry."""

    fault: str | None = None
    slow: str | None = None
    differs: str | None = None
    faulty: tuple[int, ...] = ()
    """Numbers of the GPUs that `fault` is about; of MIG instances all those of such a GPU."""
    slowed: tuple[int, ...] = ()

    @property
    def problem(self) -> str:
        """The worst of them in words, empty without any."""
        named = (("GPUs differ", self.differs), ("GPU fault", self.fault), ("GPU slow", self.slow))
        return next((f"{name}: {text}" for name, text in named if text), "")


class GpuHealth:
    """Follows the readings of one node; `declared` and `gpu_type` are its own settings."""

    def __init__(
        self, declared: int = -1, gpu_type: str = "", unusable: Collection[int] = ()
    ) -> None:
        """Compare with so many GPUs of a type; -1: as many as there are."""
        self.conditions = Conditions()
        self._declared = declared
        self._gpu_type = gpu_type
        self._unusable = frozenset(unusable)
        self.registered: tuple[MigInstance, ...] = ()
        """The MIG instances that the present incarnation offers, by number, where it has any."""
        self._slow: dict[int, str] = {}
        self._runs: dict[int, int] = {}
        """Readings in a row that differ from what a GPU counts as."""
        self._xids: dict[int, tuple[int, ...]] = {}
        self._uuids: dict[int, str] = {}

    def memory(self) -> list[dict[str, object]]:
        """Return what the next process has to know, as JSON: an entry per GPU with an error."""
        return [
            {
                "gpu": gpu,
                "uuid": self._uuids.get(gpu, ""),
                "xids": list(self._xids.get(gpu, ())),
                "slow": self._slow.get(gpu, ""),
            }
            for gpu in sorted({*self._xids, *self._slow})
        ]

    def take_up(self, memory: Any) -> None:
        """Go on from what an earlier process of this boot has left, before the first reading."""
        try:
            entries = [
                (int(one["gpu"]), str(one["uuid"]), tuple(map(int, one["xids"])), str(one["slow"]))
                for one in memory
            ]
        except (KeyError, TypeError, ValueError):
            return
        self._uuids = {gpu: uuid for gpu, uuid, _, _ in entries if uuid}
        self._xids = {gpu: xids for gpu, _, xids, _ in entries if xids}
        self._slow = {gpu: slow for gpu, _, _, slow in entries if slow}

    def note(self, readings: Sequence[GpuReading]) -> tuple[GpuReading, ...]:
        """Note a reading of all GPUs, and return it with the errors that are remembered.

        Without any reading nothing is known, as no driver was found.
        """
        if not readings:
            return ()
        readings = tuple(self._with_errors(reading) for reading in readings)
        used = self._used(readings)
        for reading in used:
            self._follow(reading)
        self.conditions = Conditions(
            _joined(text for reading in used for text in faults(reading)),
            _joined(self._slow[gpu] for gpu in sorted(self._slow)),
            _joined(
                differences(
                    self._declared, self._gpu_type, self._unusable, readings, self.registered
                )
            ),
            self._offered(reading.gpu for reading in used if any(faults(reading))),
            self._offered(sorted(self._slow)),
        )
        return readings

    def _used(self, readings: Sequence[GpuReading]) -> list[GpuReading]:
        """Return the readings of GPUs that are offered, or of which an instance is."""
        if not profile_of(self._gpu_type):
            return [reading for reading in readings if reading.gpu not in self._unusable]
        parents = {one.gpu for n, one in enumerate(self.registered) if n not in self._unusable}
        return [reading for reading in readings if reading.gpu in parents]

    def _offered(self, gpus: Iterable[int]) -> tuple[int, ...]:
        """Return the numbers under which jobs get these GPUs, as the driver counts them."""
        if not profile_of(self._gpu_type):
            return tuple(gpus)
        return numbers_of(self.registered, gpus, self._unusable)

    def _with_errors(self, reading: GpuReading) -> GpuReading:
        """Return the reading with the earlier errors of this GPU; another one has none of them."""
        gpu, known = reading.gpu, self._uuids.get(reading.gpu, "")
        if reading.uuid and known and reading.uuid != known:
            self._xids.pop(gpu, None)
            self._slow.pop(gpu, None)
            self._runs.pop(gpu, None)
        if reading.uuid:
            self._uuids[gpu] = reading.uuid
        earlier = (xid for xid in self._xids.get(gpu, ()) if xid not in reading.xids)
        if xids := (*earlier, *reading.xids)[-XIDS_KEPT:]:
            self._xids[gpu] = xids
        return replace(reading, xids=xids)

    def _follow(self, reading: GpuReading) -> None:
        text = slowness(reading)
        if bool(text) is (reading.gpu in self._slow):
            self._runs.pop(reading.gpu, None)
            return
        run = self._runs[reading.gpu] = self._runs.get(reading.gpu, 0) + 1
        if run < IN_A_ROW:
            return
        del self._runs[reading.gpu]
        if text:
            self._slow[reading.gpu] = text
        else:
            del self._slow[reading.gpu]


def faults(reading: GpuReading) -> Iterator[str]:
    """Return why a GPU needs a reset or service."""
    name = _name(reading)
    if reading.lost:
        yield f"{name} does not answer"
    for xid in reading.xids:
        if xid in FATAL_XIDS:
            yield f"{name}: Xid {xid}, {FATAL_XIDS[xid]}"
    if reading.rows_failed:
        yield f"{name} could not replace a memory row"
    if reading.uncorrected_errors:
        yield f"{name}: {reading.uncorrected_errors} uncorrected memory errors"


def slowness(reading: GpuReading) -> str:
    """Return why the clocks of a GPU are low against its will, empty where they are not."""
    reasons = [reason for reason in reading.slowdowns if reason in SLOWING]
    if not (reasons and reading.sm_mhz is not None and reading.most_sm_mhz):
        return ""
    if reading.sm_mhz >= SLOW_CLOCK * reading.most_sm_mhz:
        return ""
    clock = f"{reading.sm_mhz} of {reading.most_sm_mhz} MHz"
    return f"{_name(reading)} is slowed down by {' and '.join(reasons)}, {clock}"


def _name(reading: GpuReading) -> str:
    return f"GPU {reading.gpu}" + (f" ({reading.uuid})" if reading.uuid else "")


def _joined(texts: Iterator[str]) -> str:
    return "; ".join(texts)[:LONGEST]
