"""The state of access: the registry that every service folds, and the commands answered."""

from __future__ import annotations

from dataclasses import dataclass, field

from shared.contracts.registry import AccessView
from shared.ledger.answers import AnsweredCommands


@dataclass(slots=True)
class AccessState:
    """The state of the one lane; only `evolve` changes it."""

    view: AccessView = field(default_factory=AccessView)
    settled: dict[str, str] = field(default_factory=dict)
    """Inputs that were quarantined and an operator has decided on -> type of the event."""
    answered: AnsweredCommands = field(default_factory=AnsweredCommands)
