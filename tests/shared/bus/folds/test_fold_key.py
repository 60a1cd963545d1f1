"""A changed fold never reads a state of the one before: everything it is made of is in its key."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from services.access.core.decide import Access
from services.admission.core.decide import Admission
from services.executor.core.agents.state import AgentPool
from services.executor.virtual.lane_reader import FOLD
from services.failslow.core.decide import FailSlow
from services.placement.core.decide import Placement
from services.priority.core.decide import Priority
from services.throttle.core.decide import Throttle
from shared.bus.folds import fold_key as keys
from shared.bus.folds.fold_key import DECODING, KEY_LENGTH, fold_key, key_of_state, reachable
from shared.contracts.codec import decode_event, encode_event
from shared.ledger.decider import Decider
from tests.replay.golden import path_of, read

DECIDERS: tuple[type[Decider[Any]], ...] = (
    Access,
    Admission,
    FailSlow,
    Placement,
    Priority,
    Throttle,
)
RECORDED: tuple[type[Decider[Any]], ...] = (Admission, Placement, Priority)
ROOT = Path(__file__).parents[4]
STATE = '"""The state."""\nfrom folded.rule import step\n\n\nclass State:\n    value = 0\n'
EVOLVE = "import folded.rule\n\n\ndef evolve(state, by):\n    return folded.rule.step(state, by)\n"
RULE = "def step(state, by):\n    state.value += by\n"

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write modules of the package `folded`, which is the only own one; caches are empty then."""
    (tmp_path / "folded").mkdir()
    (tmp_path / "folded" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(keys, "OWN", frozenset({"folded"}))
    monkeypatch.setattr(keys, "DECODING", ())
    monkeypatch.delitem(sys.modules, "folded", raising=False)

    def written(**modules: str) -> None:
        for name, text in modules.items():
            (tmp_path / "folded" / f"{name}.py").write_text(text)
        monkeypatch.setattr(keys, "BEGAN_S", time.time() + 1)
        for cached in (keys.fold_key, keys.imports_of, keys.code_digest):
            cached.cache_clear()

    written(state=STATE, evolve=EVOLVE, rule=RULE, decide="import folded.evolve\n")
    yield written
    for cached in (keys.fold_key, keys.imports_of, keys.code_digest):
        cached.cache_clear()


def key() -> str:
    return fold_key(("folded.state", "folded.evolve"))


def test_the_key_changes_with_the_code_that_the_fold_reaches_and_no_other(write: Write) -> None:
    before = key()
    assert len(before) == KEY_LENGTH
    write(decide="import folded.evolve\n\nLIMIT = 7\n")
    assert key() == before
    write(rule=RULE.replace("+=", "-="))
    assert key() != before
    write(rule=RULE)
    assert key() == before


def test_comments_docstrings_and_layout_do_not_count(write: Write) -> None:
    before = key()
    text = '"""Rules."""\n\n# why\ndef step(state, by):\n    """Add."""\n    state.value += (by)\n'
    write(rule=text)
    assert key() == before


def test_a_field_more_is_another_key(write: Write) -> None:
    before = key()
    write(state=STATE + "    more = 1\n")
    assert key() != before


def test_what_a_fold_is_given_and_the_libraries_count(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = ("folded.state",)
    assert len({fold_key(roots), fold_key(roots, "a"), fold_key(roots, "b")}) == 3
    before = key()
    keys.fold_key.cache_clear()
    monkeypatch.setattr(keys, "version", lambda library: "99")
    assert key() != before


def test_code_that_changed_since_the_process_began_has_a_key_of_its_own(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = key()
    monkeypatch.setattr(keys, "BEGAN_S", 0.0)
    keys.fold_key.cache_clear()
    first = key()
    keys.fold_key.cache_clear()
    assert len({before, first, key()}) == 3


def test_a_root_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"services\.none"):
        fold_key(("services.none",))


@pytest.mark.parametrize("decider", DECIDERS, ids=lambda decider: decider.ledger)
def test_the_fold_of_a_service_is_without_its_decisions(decider: type[Decider[Any]]) -> None:
    module = type(decider().initial(0)).__module__
    modules = reachable((module, f"{module.rpartition('.')[0]}.evolve", *DECODING))
    assert decider.__module__ not in modules
    assert len(key_of_state(type(decider().initial(0)))) == KEY_LENGTH


def test_the_folds_of_executors_have_keys() -> None:
    keys_of_folds = {key_of_state(AgentPool), fold_key(FOLD), fold_key(FOLD, "one node")}
    assert {len(one) for one in keys_of_folds} == {KEY_LENGTH}
    assert len(keys_of_folds) == 3


@pytest.mark.parametrize("decider", RECORDED, ids=lambda decider: decider.ledger)
def test_every_module_that_a_recorded_fold_runs_is_in_its_key(decider: type[Decider[Any]]) -> None:
    fresh, files = decider(), set[str]()
    calls, _ = read(path_of(fresh.ledger))
    state = fresh.initial(0)
    module = type(state).__module__
    facts = [fact for call in calls for fact in call.facts(fresh.ledger)]
    raw = [(fact, encode_event(fact.event)) for fact in facts]

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            files.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        for fact, data in raw:
            fresh.evolve(state, fact._replace(event=decode_event(fact.event.TYPE, data)))
    finally:
        sys.setprofile(None)
    own = {path for path in files if path.startswith((f"{ROOT}/services/", f"{ROOT}/shared/"))}
    modules = reachable((module, f"{module.rpartition('.')[0]}.evolve", *DECODING))
    shell = sys.modules[decider.__module__].__file__
    assert len(own) > 5
    assert own - {str(file) for file in modules.values()} == {shell}, "it calls `evolve` alone"
