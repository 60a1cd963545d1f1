"""Words that `docs/glossary.md` retires, in identifiers, docstrings, comments and messages."""

from __future__ import annotations

import ast
import io
import itertools
import re
import tokenize
from collections.abc import Iterator

from infra.lint.length import MIGRATIONS
from infra.lint.source import Source

RETIRED = frozenset({"found", "told", "said", "wish", "kin", "sights", "nobody", "whose"})
NEVER_A_PART = RETIRED - {"found"}
"""`found` may be a part of a name, as in `not_found`; the others may not."""
VAGUE = frozenset({"asked", "came", "each", "given", "got", "here", "made", "no", "odd", "what"})
"""Words that say nothing of what an identifier of the product holds; tests may use them."""
UNCLEAR_PARTS = frozenset(
    {"ask", "asked", "asks", "beat", "knows", "tell", "tells", "wanted", "wants"}
)
"""Words that are no part of a name of the product, such as `may_beat`; tests may use them."""
RETIRED_BELOW: dict[str, frozenset[str]] = {"services/placement/": frozenset({"draft"})}
"""Words that the glossary retires for the names of one folder of the product."""
OPENINGS = ("Who ", "Whose ", "Nobody ", "What ")
"""A docstring is a sentence about the code, not the answer to a question."""
ERRORS_ALONE = ("Raises ", "Also ")
"""Openings of a docstring that leaves open what the function does."""
QUESTIONS = (*OPENINGS, "Whether ", "How ", "Which ", "Why ")
"""The same for docstrings of modules, classes and functions; a field's may be `Why it waits`."""
DESCRIBED = (ast.Assign, ast.AnnAssign, ast.AugAssign)
"""Statements of which a text behind them is the description."""
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
KEPT = frozenset(
    {
        ("client/berth_client/answers/access.py", "whose"),
        ("shared/projections/audit.py", "whose"),
        ("shared/contracts/llm.py", "made"),
    }
)
"""Names that are a column of a table or a field of a message, by file."""
UNCLEAR = re.compile(r"\b(nobody|somebody|told|wish(?:es|ed)?)\b", re.IGNORECASE)
"""Words that leave open which service, process or operator the docstring of a test means."""
UNCLEAR_IN_PRODUCT = re.compile(
    r"\b(nobody|somebody|told|tell(?:s|ing)?|ask(?:s|ed|ing)?|want(?:s|ed|ing)?|wish(?:es|ed)?)\b",
    re.IGNORECASE,
)
"""The same for docstrings, comments and messages of the product."""
KEPT_TEXTS = frozenset(
    {
        "benchmarks/parts/chaos/flood.py",
        "infra/lint/words.py",
        "infra/postgres/server.py",
        "shared/contracts/failures.py",
    }
)
"""Files whose strings name these words, a key of recorded results, an account of the system, or
what a user has to do."""
PART = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
BANNER = re.compile(r"^\s*# ?[-=─]{3,}")


def check(source: Source) -> Iterator[str]:
    """Yield a finding per retired identifier, docstring opening and section banner."""
    for node in source.nodes:
        for name, number in _names(node):
            if (source.path, name) in KEPT:
                continue
            if is_retired(name) or (not source.is_test and _is_unclear(name, source.path)):
                yield f"{source.path}:{number}: retired word in the identifier: {name}"
            elif name in VAGUE and not source.is_test:
                yield f"{source.path}:{number}: identifier that names nothing: {name}"
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))) if source.is_test and (
                word := UNCLEAR.search(text)
            ):
                yield f"{source.path}:{node.lineno}: retired word in a docstring: {word[0]}"
    yield from _questions(source)
    yield from _misplaced(source)
    yield from _texts(source)
    for number, line in enumerate(source.text.splitlines(), 1):
        if BANNER.match(line):
            yield f"{source.path}:{number}: section banner; a file that needs one is two files"


def _questions(source: Source) -> Iterator[str]:
    """Yield a finding per docstring that is the answer to a question, or names errors alone.

    Migrations that were released are not changed any more.
    """
    if source.path.startswith(MIGRATIONS):
        return
    of_a_body = {
        id(node.body[0]) for node in source.nodes if isinstance(node, WITH_DOCSTRING) and node.body
    }
    for node in source.nodes:
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))) if text.startswith(
                QUESTIONS if id(node) in of_a_body else OPENINGS
            ):
                opening = text.split()[0]
                yield f"{source.path}:{node.lineno}: docstring begins with a question: {opening}"
            case ast.Expr(value=ast.Constant(value=str(text))) if (
                id(node) in of_a_body and text.startswith(ERRORS_ALONE) and not source.is_test
            ):
                yield f"{source.path}:{node.lineno}: docstring without what the function does"


def _misplaced(source: Source) -> Iterator[str]:
    """Yield a finding per text that stands alone and describes nothing before it."""
    for node in source.nodes:
        if not isinstance(node, WITH_DOCSTRING):
            continue
        for before, statement in itertools.pairwise(node.body):
            match statement:
                case ast.Expr(value=ast.Constant(value=str())) if not isinstance(before, DESCRIBED):
                    yield f"{source.path}:{statement.lineno}: text that describes no name before it"


def _texts(source: Source) -> Iterator[str]:
    """Yield a finding per docstring, message and comment of the product with an unclear word."""
    if source.is_test or source.path in KEPT_TEXTS or not UNCLEAR_IN_PRODUCT.search(source.text):
        return
    for node in source.nodes:
        match node:
            case ast.Constant(value=str(text)) if word := UNCLEAR_IN_PRODUCT.search(text):
                yield f"{source.path}:{node.lineno}: retired word in a text: {word[0]}"
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT and (word := UNCLEAR_IN_PRODUCT.search(token.string)):
            yield f"{source.path}:{token.start[0]}: retired word in a comment: {word[0]}"


def is_retired(name: str) -> bool:
    """Return whether the identifier is, or contains, a retired word."""
    parts = _parts(name)
    return (len(parts) == 1 and parts[0] in RETIRED) or not NEVER_A_PART.isdisjoint(parts)


def _is_unclear(name: str, path: str) -> bool:
    words = _parts(name)
    retired = (words_of for folder, words_of in RETIRED_BELOW.items() if path.startswith(folder))
    return any(not unclear.isdisjoint(words) for unclear in (UNCLEAR_PARTS, *retired))


def _parts(name: str) -> list[str]:
    return [part.lower() for part in PART.findall(name)]


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
