"""Requests to an API that may be away for a moment."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any


def ask(url: str, key: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Status and JSON; 0 where nobody answers."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=15) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())
    except OSError as error:
        return 0, str(error)
