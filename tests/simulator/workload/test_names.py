"""Names of traces become legal names of Berth without collisions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from shared.contracts.base import Name, Text
from simulator.workload.names import DEMO_TENANTS, assign_tenant, name_of, text_of

LEGAL: TypeAdapter[str] = TypeAdapter(Name)
FREE: TypeAdapter[str] = TypeAdapter(Text)
ANY_TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=120)


@given(ANY_TEXT)
def test_any_text_becomes_a_legal_name(text: str) -> None:
    assert LEGAL.validate_python(name_of(text)) == name_of(text)


@given(ANY_TEXT, ANY_TEXT)
def test_two_texts_never_share_a_name(one: str, other: str) -> None:
    assert (name_of(one) == name_of(other)) == (one == other)


@given(ANY_TEXT)
def test_any_text_becomes_legal_free_text(text: str) -> None:
    assert FREE.validate_python(text_of(text)) == text_of(text)


def test_a_legal_name_stays_as_it_is() -> None:
    assert name_of("vc-7f04ca") == "vc-7f04ca"


def test_names_that_differ_in_case_alone_stay_apart() -> None:
    assert name_of("vcA") != name_of("vca")
    assert name_of("vcA").startswith("vca-")


def test_jobs_without_a_tenant_are_spread_over_all_tenants() -> None:
    got = [assign_tenant(str(n), DEMO_TENANTS) for n in range(1000)]
    assert all(got.count(tenant) > 200 for tenant in DEMO_TENANTS)
