"""Folds the events of the access ledger into the state."""

from __future__ import annotations

from services.access.core.state import AccessState
from shared.contracts.access import (
    AttemptsRefused,
    KeyCreated,
    KeyRevoked,
    TenantRegistered,
    TenantRetired,
)
from shared.contracts.base import Event
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.endpoints import EndpointConfigured, EndpointDeleted
from shared.contracts.enrolment import (
    NodeApproved,
    NodeCredentialRenewed,
    NodeEnrolled,
    NodeForgotten,
    NodeRevoked,
    NodeTokenCreated,
    NodeTokenRevoked,
)
from shared.contracts.pools import PoolConfigured, PoolDeleted
from shared.contracts.rejected import InputRetryRequested, InputSkipped
from shared.contracts.secrets import SecretDeleted, SecretRewrapped, SecretStored
from shared.contracts.terminals import TerminalClosed, TerminalOpened
from shared.contracts.users import UserDeleted, UserRegistered
from shared.contracts.webhooks import WebhookChanged, WebhookCreated, WebhookDeleted, WebhookTested
from shared.ledger.answers import fold_answer
from shared.ledger.decider import Fact
from shared.ledger.folds import INPUT_FOLDS, EventFold, folding, ignore


def fold_registry(state: AccessState, event: Event, fact: Fact) -> None:
    state.view.apply(event)


def note_settled(state: AccessState, event: InputRetryRequested | InputSkipped, fact: Fact) -> None:
    state.settled[event.input_id] = event.TYPE


FOLDS: dict[type[Event], EventFold[AccessState]] = {
    CommandAccepted: fold_answer,
    CommandRefused: fold_answer,
    KeyCreated: fold_registry,
    KeyRevoked: fold_registry,
    TenantRegistered: fold_registry,
    TenantRetired: fold_registry,
    PoolConfigured: fold_registry,
    PoolDeleted: fold_registry,
    EndpointConfigured: fold_registry,
    EndpointDeleted: fold_registry,
    NodeTokenCreated: fold_registry,
    NodeTokenRevoked: fold_registry,
    NodeEnrolled: fold_registry,
    NodeApproved: fold_registry,
    NodeRevoked: fold_registry,
    NodeForgotten: fold_registry,
    NodeCredentialRenewed: fold_registry,
    SecretStored: fold_registry,
    SecretRewrapped: fold_registry,
    SecretDeleted: fold_registry,
    UserRegistered: fold_registry,
    UserDeleted: fold_registry,
    WebhookCreated: fold_registry,
    WebhookChanged: fold_registry,
    WebhookDeleted: fold_registry,
    WebhookTested: ignore,
    TerminalOpened: ignore,
    TerminalClosed: ignore,
    AttemptsRefused: ignore,
    **INPUT_FOLDS,
    InputRetryRequested: note_settled,
    InputSkipped: note_settled,
}
"""Every event type of the access ledger, and its fold."""

evolve = folding("access", FOLDS)
