"""Of a compared event it is known that it exists, of which type, and with which content."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shared.verify.compared_events import UNKNOWN, ComparedEvents, content_digest
from shared.verify.row_store import RowStore

KIND = "job.held.v1"
ids = st.builds("{}/{}/{}/{}".format, st.just("placement"), *[st.integers(0, 300)] * 3)


@given(st.dictionaries(ids, st.binary(max_size=2), max_size=30), ids)
def test_each_event_is_known_with_its_content_and_no_other(
    contents: dict[str, bytes], other: str
) -> None:
    compared = ComparedEvents(RowStore())
    for event_id, body in contents.items():
        compared.add(event_id, KIND)
        compared.set_content(event_id, KIND, content_digest(body))
    for event_id, body in contents.items():
        assert compared.content_of(event_id, KIND) == content_digest(body)
        assert compared.content_of(event_id, "job.started.v1") is None
    assert (compared.content_of(other, KIND) is None) == (other not in contents)


def test_an_event_that_was_removed_has_no_known_content() -> None:
    compared = ComparedEvents(RowStore())
    compared.add("placement/0/1/0", KIND)
    assert compared.content_of("placement/0/1/0", KIND) == UNKNOWN


def test_a_hundred_seqs_share_a_row() -> None:
    kept = RowStore()
    for seq in range(100, 300):
        compared = ComparedEvents(kept)
        compared.add(f"placement/0/{seq}/0", KIND)
        compared.store()
    assert [len(str(key)) for key, _ in kept.rows("compared events")] == [13, 13]
