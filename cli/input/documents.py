"""Documents of a file or of stdin, JSON or YAML: what `-f FILE` reads."""

from __future__ import annotations

import json
import sys
from collections.abc import Hashable
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.errors import BadInput

if TYPE_CHECKING:
    import yaml

Body = dict[str, object]
STDIN = Path("-")
SHOWN_CHARS = 64
"""Of a value in an error."""


def read_documents(path: Path) -> list[Body]:
    """Return the objects of a file, `-` being stdin; YAML may have several. Raises BadInput."""
    name = "stdin" if path == STDIN else str(path)
    try:
        text = sys.stdin.read() if path == STDIN else path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInput(f"{name}: no such file; JSON or YAML, or - for stdin, is allowed") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{name}: {error}") from None
    documents = _parsed(path.suffix.lower(), name, text)
    for document in documents:
        if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
            raise BadInput(f"{name}: an object with named fields is allowed")
        try:
            check_values(document, name)
        except RecursionError:
            raise BadInput(f"{name}: nested too deeply, or in itself") from None
    return documents


def check_values(value: object, path: str) -> None:
    """Raise BadInput, with its path, for a value that JSON lacks, as the date of a YAML file."""
    match value:
        case dict():
            for name, item in value.items():
                if not isinstance(name, str):
                    raise BadInput(f"{path}: {name!r} is no name; put it in quotes")
                check_values(item, f"{path}: {name}")
        case list():
            for item in value:
                check_values(item, path)
        case float() if not isfinite(value):
            raise BadInput(f"{path}: {value}; a finite number is allowed")
        case str() | int() | float() | None:
            return
        case _:
            rule = "text, number, true, false, list or object is allowed; put it in quotes"
            raise BadInput(f"{path}: {str(value)[:SHOWN_CHARS]}; {rule}")


def _parsed(suffix: str, name: str, text: str) -> list[Any]:
    try:
        return [json.loads(text, object_pairs_hook=_once)]
    except (ValueError, RecursionError) as error:
        if suffix == ".json":
            raise BadInput(f"{name}: invalid JSON: {error}") from None
    try:
        import yaml
    except ModuleNotFoundError:
        raise BadInput(f"{name}: YAML needs the package pyyaml; use JSON instead") from None
    try:
        # A document of comments alone is none.
        return [item for item in yaml.load_all(text, _strict_loader()) if item is not None]
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise BadInput(f"{name}: invalid YAML: {error}") from None


def _once(pairs: list[tuple[str, object]]) -> Body:
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"given twice: {twice}; one value is allowed")
    return document


def _strict_loader() -> type[yaml.SafeLoader]:
    """Return the safe loader, without its last value of a name that is given twice."""
    import yaml

    class Strict(yaml.SafeLoader):
        def construct_mapping(
            self, node: yaml.MappingNode, deep: bool = False
        ) -> dict[Hashable, Any]:
            names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            for name in names:
                if names.count(name) > 1 and name != "<<":
                    raise BadInput(f"given twice: {name}; one value is allowed")
            return super().construct_mapping(node, deep=deep)

    return Strict
