"""Bodies of submissions as random JSON."""

from __future__ import annotations

from hypothesis import strategies as st

from services.gateway.core.submission import FlatJobBody

FIELDS = sorted({*FlatJobBody.model_fields, "spec", "colour"})

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)
hostile = st.dictionaries(st.sampled_from(FIELDS), plain, max_size=6)
