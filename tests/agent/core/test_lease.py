"""Rules of the lease, over any order of heartbeats, answers, terms and time."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from berth_agent.core.lease import Lease, restore
from berth_agent.messages import Terms

UUID = "a" * 32
LENGTHS = st.none() | st.sampled_from([1.0, 5.0, 20.0])


def terms(number: int, stop_after_s: float | None) -> Terms:
    return Terms(
        terms_id=f"t{number}",
        stop_after_s=stop_after_s,
        heartbeat_s=1.0,
        request_timeout_s=1.0,
        reconnect_s=1.0,
    )


def a_lease(stop_after_s: float | None = 10.0, at_ms: int = 1_000) -> Lease:
    lease = Lease(UUID, terms(1, stop_after_s))
    lease.begin(at_ms, lease.terms.terms_id)
    lease.join()
    return lease


class LeaseLife(RuleBasedStateMachine):
    """A node, its clock, and answers that come late, twice or never."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 1_000
        self.lease = Lease(UUID, terms(1, 10.0))
        self.sent: list[int] = []
        self.handed: list[int | None] = []
        self.was_over = False
        self.reported: list[str] = ["t1"]
        self.number = 1

    @rule()
    def begin(self) -> None:
        began = self.lease.begun
        self.lease.begin(self.now_ms, "t1")
        self.lease.join()
        if not began:
            self.note_handed()

    @rule(ms=st.integers(1, 30_000))
    def pass_time(self, ms: int) -> None:
        self.now_ms += ms

    @rule()
    def send(self) -> None:
        if self.lease.may_send_heartbeat(self.now_ms):
            self.sent.append(self.now_ms)

    @precondition(lambda self: bool(self.sent))
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        """Any heartbeat is answered, also an old one, also again."""
        before = self.lease.deadline_ms
        sent_ms = data.draw(st.sampled_from(self.sent))
        over = self.lease.is_over(self.now_ms)
        changed = self.lease.acknowledge(sent_ms, self.now_ms)
        assert not (over and changed)
        length_s = self.lease.terms.stop_after_s
        if changed and length_s is not None:
            assert self.lease.deadline_ms == max(sent_ms + length_s * 1000, before or 0)
        if not changed:
            assert self.lease.deadline_ms == before
        self.note_handed()

    @rule(stop_after_s=LENGTHS)
    def change(self, stop_after_s: float | None) -> None:
        self.number += 1
        self.lease.change_terms(terms(self.number, stop_after_s))

    @rule(noted=st.booleans())
    def report(self, noted: bool) -> None:
        """When terms are reported, no deadline ever handed out lies beyond them."""
        reported = self.lease.take_terms_to_report(self.now_ms, noted)
        if reported:
            assert noted and reported not in self.reported
            self.reported.append(reported)
            length_s = self.lease.terms.stop_after_s
            if length_s is not None:
                limit_ms = self.now_ms + length_s * 1000
                assert all(d is None or d <= limit_ms for d in self.handed)
                assert self.lease.deadline_ms is not None

    @rule()
    def restart(self) -> None:
        """A restarted agent reads what it wrote."""
        if self.lease.begun:
            document = json.loads(json.dumps(self.lease.to_json()))
            restored = restore(document, UUID)
            assert restored == self.lease
            self.lease = restored
            assert restore(document, "b" * 32) is None

    @invariant()
    def over_is_final(self) -> None:
        over = self.lease.is_over(self.now_ms)
        assert over or not self.was_over
        self.was_over = over
        assert not (
            over and (self.lease.may_run(self.now_ms) or self.lease.may_send_heartbeat(self.now_ms))
        )

    def note_handed(self) -> None:
        self.handed.append(self.lease.deadline_ms)


TestLeaseLife = LeaseLife.TestCase


def test_the_first_deadline_counts_from_the_first_sending_of_the_registration() -> None:
    lease = Lease(UUID, terms(1, 10.0))
    lease.begin(1_000, "t1")
    lease.begin(9_000, "t1")
    assert lease.deadline_ms == 11_000
    assert not lease.may_run(1_001), "the ledger does not hold the registration yet"


def test_an_answer_after_the_deadline_is_ignored() -> None:
    lease = a_lease()
    assert not lease.acknowledge(10_999, 11_000)
    assert lease.is_over(11_000) and lease.is_over(0)


def test_an_answer_just_before_the_deadline_counts_from_the_sending() -> None:
    lease = a_lease()
    assert lease.acknowledge(2_000, 10_999)
    assert lease.deadline_ms == 12_000


def test_answers_out_of_order_shorten_nothing() -> None:
    lease = a_lease()
    assert lease.acknowledge(6_000, 6_100)
    assert not lease.acknowledge(3_000, 6_200)
    assert lease.deadline_ms == 16_000


def test_without_an_end_workers_are_kept() -> None:
    lease = a_lease(None)
    assert lease.deadline_ms is None and lease.may_run(10**12)
    lease.change_terms(terms(2, 5.0))
    assert lease.take_terms_to_report(2_000, True) == "", "steps have no deadline yet"
    assert lease.acknowledge(2_000, 2_100)
    assert lease.deadline_ms == 7_000
    assert lease.take_terms_to_report(2_200, False) == ""
    assert lease.take_terms_to_report(2_200, True) == "t2"


def test_shorter_terms_are_reported_when_the_older_deadlines_have_come_near() -> None:
    lease = a_lease(20.0)
    lease.change_terms(terms(2, 5.0))
    assert lease.acknowledge(2_000, 2_100) and lease.deadline_ms == 21_000
    assert lease.take_terms_to_report(15_999, True) == ""
    assert lease.take_terms_to_report(16_000, True) == "t2"


def test_present_terms_are_reported_where_the_registration_names_older_ones() -> None:
    """Else placement would wait for ever as long as the older ones say."""
    lease = Lease(UUID, terms(2, 5.0))
    lease.begin(1_000, "t1")
    assert lease.take_terms_to_report(1_100, True) == "", (
        "the ledger does not hold the registration"
    )
    lease.join()
    assert lease.take_terms_to_report(1_100, True) == "t2"
    assert lease.take_terms_to_report(1_200, True) == ""


@given(st.integers(0, 10**9))
def test_a_fence_ends_the_lease_whatever_the_deadline(now_ms: int) -> None:
    lease = a_lease(None)
    lease.end()
    assert lease.is_over(now_ms) and not lease.acknowledge(now_ms, now_ms)
