"""Says in the log which proposals of schedulers were refused: the ranked queue decides then."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from shared.contracts.schedules import GpusAllotted
from shared.ledger.decider import Fact

log = logging.getLogger(__name__)


def log_refused(facts: Iterable[Fact]) -> None:
    """Log each refused proposal with its pool and the rule that it broke."""
    for fact in facts:
        if isinstance(fact.event, GpusAllotted) and fact.event.refused:
            reason = {"pool": fact.event.pool, "reason": fact.event.refused}
            log.warning("proposal of a scheduler refused", extra=reason)
