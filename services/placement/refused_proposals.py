"""Says in the log which proposals of schedulers were refused, or did not come.

The ranked queue decides then; where there was a proposal before, that one stands.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from shared.contracts.schedules import GpusAllotted, ShadowProposed
from shared.ledger.decider import Fact

log = logging.getLogger(__name__)


def log_refused(facts: Iterable[Fact]) -> None:
    """Log each refused proposal with its pool and the rule that it broke, and each missing one."""
    for fact in facts:
        event = fact.event
        if isinstance(event, ShadowProposed) and (event.refused or event.failed):
            extra = {"pool": event.pool, "reason": event.refused or event.failed}
            log.warning("no proposal of a shadow, which has no effect", extra=extra)
        if not isinstance(event, GpusAllotted):
            continue
        if event.refused:
            extra = {"pool": event.pool, "reason": event.refused}
            log.warning("proposal of a scheduler refused", extra=extra)
        if event.kept:
            extra = {"pool": event.pool, "reason": event.kept}
            log.warning("no proposal of a scheduler: the last one stands", extra=extra)
