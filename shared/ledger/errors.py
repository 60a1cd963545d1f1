"""Errors of a log, and which of them must end the process."""

from __future__ import annotations


class BusError(Exception):
    """Whatever the bus raises by itself."""


class ProtocolViolation(BusError):
    """The log is not what the protocol allows; going on could fork it, so the process must end.

    `runbook` says what people do then.
    """

    runbook = ""


class NotDense(ProtocolViolation):
    """Offsets are missing: compaction, retention, transactions or a lost tail."""

    runbook = "docs/operations/lost-broker-disk.md"


class TailLost(ProtocolViolation):
    """The log is shorter than, or other than, what was already read of it."""

    runbook = "docs/operations/lost-broker-disk.md"


class VectorWentBack(ProtocolViolation):
    """An accepted record un-reads an input; no honest writer does that."""


class NotAccepted(ProtocolViolation):
    """The log acknowledged our record at its place, and yet the reader rule refuses it."""


class TooLarge(ProtocolViolation):
    """One input, or one wake, leads to more events than one record can hold."""

    runbook = "docs/operations/poison-record.md"


class Forbidden(BusError):
    """The broker knows who we are and refuses, or does not believe it: trying again is no use."""


class OutcomeUnknown(BusError):
    """The append may or may not have happened, or may yet happen; only the log can tell."""


class LaneRevoked(BusError):
    """The lane was given up before the local input was decided; ask again, maybe elsewhere."""


class Busy(BusError):
    """Too many local inputs are waiting for a decision."""


class Stalled(BusError):
    """An input goes on, and this process does not follow it any more."""
