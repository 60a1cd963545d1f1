"""Descriptions in OpenAPI of the answers, whose types are those of the client."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from typing_extensions import get_original_bases, is_typeddict

from berth_client import answers


def describe_answers(schemas: dict[str, Any]) -> None:
    """Give the fields of answers their docstrings as descriptions."""
    for name in answers.__all__:
        answer = getattr(answers, name)
        if name in schemas and is_typeddict(answer):
            fields = schemas[name]["properties"]
            for field, text in field_docstrings(answer).items():
                fields[field]["description"] = text


def field_docstrings(answer: type) -> dict[str, str]:
    """Return the text below each field of the class, or of the classes that it extends."""
    texts: dict[str, str] = {}
    for base in get_original_bases(answer):
        if is_typeddict(base):
            texts |= field_docstrings(base)
    [body] = ast.parse(inspect.getsource(answer)).body
    assert isinstance(body, ast.ClassDef)
    for field, text in zip(body.body, body.body[1:], strict=False):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(content))),
            ):
                texts[name] = inspect.cleandoc(content).replace("\n", " ")
    return texts
