"""The wait for a processor is what the kernel counts; where it counts nothing, it is unknown."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from berth_reporter.clocks import HostClock
from berth_reporter.run_delay import SCHEDSTAT, RunDelay


def test_it_is_the_second_number_in_ns(tmp_path: Path) -> None:
    path = tmp_path / "schedstat"
    path.write_text("984467 5705503000 4\n")
    assert RunDelay(str(path)).read_s() == pytest.approx(5.705503)


@pytest.mark.parametrize("text", ["", "12", "a b c", "984467 none 4"])
def test_a_file_of_another_form_tells_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "schedstat"
    path.write_text(text)
    assert RunDelay(str(path)).read_s() is None


def test_a_system_without_the_file_tells_nothing(tmp_path: Path) -> None:
    clock = HostClock(RunDelay(str(tmp_path / "none")))
    first = clock.mark()
    assert clock.delayed_s(first, clock.mark()) is None
    assert clock.between_s(first, clock.mark()) >= 0


def test_a_closed_one_tells_nothing() -> None:
    delay = RunDelay()
    delay.close()
    assert delay.read_s() is None


def test_it_is_that_of_the_thread_that_made_it() -> None:
    if not Path(SCHEDSTAT).exists():
        pytest.skip("the kernel counts no waits")
    delay, read = RunDelay(), list[float | None]()
    thread = threading.Thread(target=lambda: read.append(delay.read_s()))
    thread.start()
    thread.join()
    assert read[0] is not None
    assert read[0] <= (delay.read_s() or 0.0)


def test_a_thread_that_sleeps_does_not_wait_for_a_processor() -> None:
    if not Path(SCHEDSTAT).exists():
        pytest.skip("the kernel counts no waits")
    clock = HostClock()
    first = clock.mark()
    time.sleep(0.05)
    second = clock.mark()
    delayed_s = clock.delayed_s(first, second)
    assert delayed_s is not None
    assert 0 <= delayed_s <= clock.between_s(first, second) - 0.04
