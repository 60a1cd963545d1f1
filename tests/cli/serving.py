"""A gateway of the test's own."""

from __future__ import annotations

import json
from typing import ClassVar
from urllib.parse import urlsplit

from cli.api.http import Json
from tests.serving import Quiet


class Gateway(Quiet):
    """Answers a GET with the document of its path or 404, a POST or DELETE with a receipt."""

    documents: ClassVar[dict[str, Json]] = {}
    paths: ClassVar[list[str]] = []
    receipt: ClassVar[Json] = {"command_id": "c"}
    refusals: ClassVar[dict[str, int]] = {}

    def do_GET(self) -> None:
        self.paths.append(self.path)
        path = urlsplit(self.path).path
        document = self.documents.get(path)
        if path in self.refusals:
            self.answer(self.refusals[path], b'{"reason": "refused", "detail": "for the test"}')
        elif document is None:
            self.answer(404, b'{"reason": "not_found", "detail": "no such object"}')
        else:
            self.answer(200, json.dumps(document).encode())

    def do_POST(self) -> None:
        self.received()
        self.answer(202, json.dumps(self.receipt).encode())

    def do_DELETE(self) -> None:
        self.answer(202, json.dumps(self.receipt).encode())
