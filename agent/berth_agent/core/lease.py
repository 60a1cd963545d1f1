"""The lease of a node: until when its workers may live. Times are ms of CLOCK_BOOTTIME.

A deadline counts from before a heartbeat was sent, never from its answer, and is extended only
while it has not passed. The first one counts from the first sending of the registration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from berth_agent.messages import Terms

NEVER_MS = 0
"""No deadline was ever handed out."""


@dataclass(slots=True)
class Lease:
    """The lease of one incarnation; `deadline_ms` is absent where workers are kept."""

    incarnation: str
    terms: Terms
    begun: bool = False
    joined: bool = False
    over: bool = False
    deadline_ms: int | None = 0
    sent_ms: int = 0
    """When the heartbeat was sent from which the deadline follows."""
    handed_ms: int = NEVER_MS
    """Latest deadline that any step may have seen."""
    reported_terms: str = ""

    def begin(self, sent_ms: int, named_terms: str) -> None:
        """Count from the first sending of the registration; repetitions do not extend it.

        `named_terms`: those that the registration names, which may be older than the present ones.
        """
        if not self.begun:
            self.begun = True
            self.reported_terms = named_terms
            self._hand_out(sent_ms)

    def join(self) -> None:
        """Note that the ledger holds the registration."""
        self.joined = True

    def end(self) -> None:
        """End the lease at once and for good: the incarnation was fenced, or left."""
        self.over = True

    def is_over(self, now_ms: int) -> bool:
        """Return whether no worker of the incarnation may live any more; once true, always true."""
        if self.begun and self.deadline_ms is not None and now_ms >= self.deadline_ms:
            self.over = True
        return self.over

    def may_run(self, now_ms: int) -> bool:
        """Return whether a worker may be prepared or started."""
        return self.begun and self.joined and not self.is_over(now_ms)

    def may_send_heartbeat(self, now_ms: int) -> bool:
        """Return whether a heartbeat is to be sent: a lapsed incarnation sends none."""
        return self.begun and not self.is_over(now_ms)

    def acknowledge(self, sent_ms: int, now_ms: int) -> bool:
        """Take the answer to a heartbeat; return whether the deadline changed."""
        if not self.may_send_heartbeat(now_ms) or sent_ms < self.sent_ms:
            return False
        self._hand_out(sent_ms)
        return True

    def change_terms(self, terms: Terms) -> None:
        """Use new terms from the next acknowledged heartbeat on."""
        self.terms = terms

    def take_terms_to_report(self, now_ms: int, noted_by_steps: bool) -> str:
        """Return the terms under which every deadline lies now, once; else nothing.

        `noted_by_steps`: each living step has read a deadline of these terms.
        """
        if not self.may_run(now_ms) or self.reported_terms == self.terms.terms_id:
            return ""
        length_s = self.terms.stop_after_s
        if length_s is not None and self.handed_ms > now_ms + _ms(length_s):
            return ""
        bounded = length_s is None or self.deadline_ms is not None
        if not (noted_by_steps and bounded):
            return ""
        self.reported_terms = self.terms.terms_id
        return self.reported_terms

    def _hand_out(self, sent_ms: int) -> None:
        length_s = self.terms.stop_after_s
        self.sent_ms = sent_ms
        if length_s is None:
            self.deadline_ms = None
            return
        deadline_ms = sent_ms + _ms(length_s)
        if self.deadline_ms is not None:
            # Shorter terms never shorten a deadline that a step may have seen.
            deadline_ms = max(deadline_ms, self.deadline_ms)
        self.deadline_ms = deadline_ms
        self.handed_ms = max(self.handed_ms, deadline_ms)

    def to_json(self) -> dict[str, Any]:
        """Return the content of the file that the steps and a restarted agent read."""
        return {
            "incarnation": self.incarnation,
            "deadline_boot_ms": self.deadline_ms,
            "sent_boot_ms": self.sent_ms,
            "terms_id": self.terms.terms_id,
            "stop_after_s": self.terms.stop_after_s,
            "terms": self.terms.to_json(),
            "handed_boot_ms": self.handed_ms,
            "reported_terms": self.reported_terms,
            "joined": self.joined,
            "over": self.over,
        }


def restore(document: object, incarnation: str) -> Lease | None:
    """Return the lease that was written, None if it is missing or of another incarnation.

    Raises MalformedMessage, TypeError, KeyError, ValueError where the file is damaged.
    """
    if not isinstance(document, dict) or document["incarnation"] != incarnation:
        return None
    deadline_ms = document["deadline_boot_ms"]
    return Lease(
        incarnation=incarnation,
        terms=Terms.from_json(document["terms"]),
        begun=True,
        joined=bool(document["joined"]),
        over=bool(document["over"]),
        deadline_ms=None if deadline_ms is None else int(deadline_ms),
        sent_ms=int(document["sent_boot_ms"]),
        handed_ms=int(document["handed_boot_ms"]),
        reported_terms=str(document["reported_terms"]),
    )


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
