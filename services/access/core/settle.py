"""An operator decides on a quarantined input, once and for ever."""

from __future__ import annotations

from collections.abc import Mapping

from services.access.core.outcomes import Denial, Grant, Outcome
from shared.contracts.access import RetryInput, SkipInput
from shared.contracts.rejected import InputRetryRequested, InputSkipped
from shared.contracts.topics import INPUTS

Settlement = RetryInput | SkipInput


def decide_settlement(settled: Mapping[str, str], command: Settlement) -> Outcome:
    """Settle an input; the same decision again changes nothing, another one is refused."""
    input_id = command.input_id
    ledger = input_id.partition("/")[0]
    event: InputRetryRequested | InputSkipped
    match command:
        case RetryInput():
            event = InputRetryRequested(input_id=input_id)
        case SkipInput(reason=reason):
            event = InputSkipped(input_id=input_id, reason=reason)
    if ledger not in INPUTS or (ledger == "access" and isinstance(event, InputRetryRequested)):
        allowed = ", ".join(name for name in INPUTS if name != "access")
        detail = f"input_id: {input_id!r}: ledger should be one of {allowed}; send it again instead"
        return Denial(input_id, "unknown_input", detail)
    before = settled.get(input_id, event.TYPE)
    if before != event.TYPE:
        return Denial(input_id, "already_settled", f"input_id: {input_id!r}: {before} before")
    return Grant(input_id, None if input_id in settled else event)
