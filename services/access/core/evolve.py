"""Folds the events of the access ledger into the state."""

from __future__ import annotations

from services.access.core.state import AccessState
from shared.contracts.access import (
    AttemptsRefused,
    EndpointConfigured,
    KeyCreated,
    KeyRevoked,
    PoolConfigured,
    TenantRegistered,
    TenantRetired,
)
from shared.contracts.enrolment import (
    NodeApproved,
    NodeCredentialRenewed,
    NodeEnrolled,
    NodeRevoked,
    NodeTokenCreated,
)
from shared.contracts.jobs import CommandAccepted, CommandRefused
from shared.contracts.rejected import InputQuarantined, InputRejected
from shared.ledger.decider import Fact


def evolve(state: AccessState, fact: Fact) -> None:
    """Fold one event of access's own ledger; raises on a type that it does not write."""
    match fact.event:
        case CommandAccepted() | CommandRefused() as answer:
            state.answered.apply(answer)
        case (
            PoolConfigured()
            | EndpointConfigured()
            | TenantRegistered()
            | TenantRetired()
            | KeyCreated()
            | KeyRevoked()
            | NodeTokenCreated()
            | NodeEnrolled()
            | NodeApproved()
            | NodeRevoked()
            | NodeCredentialRenewed()
        ) as event:
            state.view.apply(event)
        case AttemptsRefused() | InputRejected() | InputQuarantined():
            pass
        case event:
            raise TypeError(f"event of an unknown type in the access ledger: {event.TYPE}")
