"""What access knows: the registry that everybody folds, and which commands it has answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from shared.contracts.registry import AccessView
from shared.ledger.answers import AnsweredCommands


@dataclass(slots=True)
class Installation:
    """Only `evolve` changes it."""

    SCHEMA: ClassVar[str] = "access-1"
    view: AccessView = field(default_factory=AccessView)
    answered: AnsweredCommands = field(default_factory=AnsweredCommands)
