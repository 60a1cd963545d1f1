"""Two public classes of one name are a finding where their packages meet, and nowhere else."""

from __future__ import annotations

from infra.lint.classes import check
from infra.lint.source import parse

JOB = "class Job: ..."
ADMISSION = parse("services/admission/core/state.py", JOB)
PLACEMENT = parse("services/placement/core/state.py", JOB)


def test_classes_of_modules_that_never_meet_may_share_a_name() -> None:
    assert list(check([ADMISSION, PLACEMENT])) == []


def test_two_of_one_package_may_not() -> None:
    other = parse("services/admission/core/queue.py", JOB)
    assert list(check([ADMISSION, other])) == [
        "services/admission/core/queue.py:1: public class Job has the name of one in "
        "services.admission.core.state"
    ]


def test_a_module_that_imports_both_lets_them_meet() -> None:
    engine = parse(
        "simulator/engine/world.py",
        "from services.admission.core.state import initial\n"
        "from services.placement.core import state\n",
    )
    assert len(list(check([ADMISSION, PLACEMENT, engine]))) == 1


def test_a_module_that_imports_the_other_meets_it() -> None:
    other = parse("simulator/job.py", f"import services.admission.core.state\n{JOB}")
    assert len(list(check([ADMISSION, other]))) == 1


def test_packages_meet_where_any_module_of_one_imports_the_other() -> None:
    engine = parse("simulator/engine/world.py", "from services.admission.core import decide")
    other = parse("simulator/engine/job.py", JOB)
    assert len(list(check([ADMISSION, engine, other]))) == 1


def test_a_private_class_is_no_finding() -> None:
    private = parse("services/admission/core/queue.py", "class _Job: ...")
    assert list(check([ADMISSION, private])) == []
