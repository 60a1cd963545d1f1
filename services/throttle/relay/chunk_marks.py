"""Marks by which fields of a chunk are found without decoding it.

Within a JSON string each quotation mark is escaped, so that no text of a model can look like a
field of its chunk.
"""

from __future__ import annotations

import re

TEXT = re.compile(
    rb'"(?:content|text|reasoning_content|reasoning|refusal|arguments|name|delta)"\s*:\s*"(?!")'
)
"""A field with text of the answer that is not empty."""
USAGE = re.compile(rb'"usage"\s*:\s*\{')
FINISH = re.compile(rb'"finish_reason"\s*:\s*"')
ERROR = re.compile(rb'\s*\{\s*"error"\s*:\s*[{"]')
