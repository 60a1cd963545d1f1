"""Errors of a log; a ProtocolViolation must end the process."""

from __future__ import annotations


class BusError(Exception):
    """Base of the errors that the bus raises itself."""


class ProtocolViolation(BusError):
    """The log breaks the protocol; going on could fork it, so the process must end."""

    runbook = ""
    """Document with the steps for an operator; empty if there are none."""


class NotDense(ProtocolViolation):
    """Offsets are missing: compaction, retention, transactions or a lost tail."""

    runbook = "docs/operations/lost-broker-disk.md"


class TailLost(ProtocolViolation):
    """The log is shorter than what was already read of it, or holds other records."""

    runbook = "docs/operations/lost-broker-disk.md"


class ChainBroken(ProtocolViolation):
    """So many records in a row do not follow the last one that the log is another one."""

    runbook = "docs/operations/lost-broker-disk.md"


class VectorWentBack(ProtocolViolation):
    """An accepted record puts an input back to an earlier offset; no correct writer does that."""


class NotAccepted(ProtocolViolation):
    """The log acknowledged our record where it was due, and yet the reader rule refuses it."""


class TooLarge(BusError):
    """One input, or one wake, leads to more events than one record can hold."""


class LaneHalted(BusError):
    """A lane cannot go on until its code or an input is changed; the other lanes can."""

    runbook = "docs/operations/quarantine.md"


class Quarantined(BusError):
    """The local input led to an internal error; sending it again leads to the same."""


class Forbidden(BusError):
    """The broker refuses the credentials or the operation; trying again is of no use."""


class OutcomeUnknown(BusError):
    """The append may have happened, or may yet happen; only a read of the log shows it."""


class LaneRevoked(BusError):
    """The lane was revoked before the local input was decided; send it to the new owner."""


class Busy(BusError):
    """Too many local inputs wait for a decision."""


class Stalled(BusError):
    """An input grows, and this process does not read it any more."""


class BadArchive(ProtocolViolation):
    """The archive of a topic is damaged, incomplete, or that of another topic."""

    runbook = "docs/operations/archive.md"


class ArchiveUnreachable(BusError, OSError):
    """The archive does not answer; what only it holds cannot be read now.

    It counts as an error of input or output, which readers repeat.
    """

    runbook = "docs/operations/archive.md"
