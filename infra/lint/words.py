"""Words that `docs/glossary.md` retires, as identifiers and at the beginning of docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from infra.lint.source import Source

RETIRED = frozenset({"found", "told", "said", "wish", "kin", "sights", "nobody", "whose"})
NEVER_A_PART = RETIRED - {"found"}
"""`found` may be a part of a name, as in `not_found`; the others may not."""
VAGUE = frozenset({"asked", "came", "each", "given", "got", "here", "made", "no", "odd", "what"})
"""Words that say nothing of what an identifier of the product holds; tests may use them."""
OPENINGS = ("Who ", "Whose ", "Nobody ", "What ")
"""A docstring is a sentence about the code, not the answer to a question."""
KEPT = frozenset(
    {
        ("shared/projections/audit.py", "whose"),
        ("shared/contracts/llm.py", "made"),
        ("shared/testing/decider.py", "given"),
    }
)
"""Names that are a column of a table, a field of a message or a step of a test, by file."""
UNCLEAR = re.compile(r"\b(nobody|somebody|told|wish(?:es|ed)?)\b", re.IGNORECASE)
"""Words that leave open which service, process or operator a docstring means."""
PART = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
BANNER = re.compile(r"^\s*# ?[-=─]{3,}")


def check(source: Source) -> Iterator[str]:
    """Yield a finding per retired identifier, docstring opening and section banner."""
    for node in ast.walk(source.tree):
        for name, number in _names(node):
            if (source.path, name) in KEPT:
                continue
            if is_retired(name):
                yield f"{source.path}:{number}: retired word in the identifier: {name}"
            elif name in VAGUE and not source.is_test:
                yield f"{source.path}:{number}: identifier that names nothing: {name}"
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))) if text.startswith(OPENINGS):
                opening = text.split()[0]
                yield f"{source.path}:{node.lineno}: docstring begins with a question: {opening}"
            case ast.Expr(value=ast.Constant(value=str(text))) if word := UNCLEAR.search(text):
                yield f"{source.path}:{node.lineno}: retired word in a docstring: {word[0]}"
    for number, line in enumerate(source.text.splitlines(), 1):
        if BANNER.match(line):
            yield f"{source.path}:{number}: section banner; a file that needs one is two files"


def is_retired(name: str) -> bool:
    """Whether the identifier is, or contains, a retired word."""
    parts = [part.lower() for part in PART.findall(name)]
    return (len(parts) == 1 and parts[0] in RETIRED) or not NEVER_A_PART.isdisjoint(parts)


def _names(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield what the node names, with its line: only the places that define a name."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name, node.lineno
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, node.lineno
        case ast.arg(arg=name):
            yield name, node.lineno
        case (
            ast.alias(asname=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
        ):
            yield name, node.lineno
