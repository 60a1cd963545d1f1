"""Pages that people read have no words that leave open which service, user or node is meant."""

from __future__ import annotations

import re

import pytest

from infra.lint.words import UNCLEAR_IN_PRODUCT
from tests.docs.test_paths import ROOT, documents

CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
OTHER = ("CHANGELOG.md", "docs/decisions/", "docs/glossary.md", "docs/results/")
"""Records of their time, generated pages, and the page that retires the words."""
PAGES = [page for page in documents() if not page.startswith(OTHER)]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_retired_word(page: str) -> None:
    text = CODE.sub("", (ROOT / page).read_text())
    assert UNCLEAR_IN_PRODUCT.findall(text) == []
