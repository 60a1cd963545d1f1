"""The load of an engine is read under each engine's names; what is missing is unknown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.throttle.upstreams.metrics_text import UNKNOWN, EngineFigures, parse_figures

VLLM = """# HELP vllm:num_requests_running Requests in the batch.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="org/a {b}, \\"c\\""} 3.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="org/a"} 2.0
"""
SGLANG = """sglang:num_running_reqs{model_name="m"} 5
sglang:num_queue_reqs{model_name="m"} 7
sglang:token_usage{model_name="m"} 0.25
"""
LLAMA = "llamacpp:requests_processing 1\nllamacpp:requests_deferred 4\n"
TGI = "# TYPE tgi_queue_size gauge\ntgi_queue_size 6\ntgi_batch_current_size 8\n"


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        (VLLM + 'vllm:kv_cache_usage_perc{engine="0"} 0.5\n', EngineFigures(3, 2, 0.5)),
        (VLLM + 'vllm:gpu_cache_usage_perc{engine="0"} 0.5\n', EngineFigures(3, 2, 0.5)),
        (SGLANG, EngineFigures(5, 7, 0.25)),
        (LLAMA, EngineFigures(1, 4, None)),
        (TGI, EngineFigures(8, 6, None)),
    ],
    ids=["vllm", "vllm-0.8", "sglang", "llama.cpp", "tgi"],
)
def test_each_engine_is_read_under_its_own_names(text: str, figures: EngineFigures) -> None:
    assert parse_figures(text) == figures


def test_replicas_add_up_and_the_fullest_cache_counts() -> None:
    text = "".join(
        f'vllm:num_requests_running{{engine="{index}"}} {running}\n'
        f'vllm:num_requests_waiting{{engine="{index}"}} 1\n'
        f'vllm:kv_cache_usage_perc{{engine="{index}"}} {ratio}\n'
        for index, (running, ratio) in enumerate([(3, 0.2), (4, 0.9)])
    )
    assert parse_figures(text) == EngineFigures(7, 2, 0.9)


def test_requests_that_wait_by_reason_add_up() -> None:
    name = "vllm:num_requests_waiting_by_reason"
    text = f'{name}{{reason="capacity"}} 2\n{name}{{reason="adapter"}} 3\n'
    assert parse_figures(text).waiting == 5


def test_the_newer_name_of_a_figure_counts() -> None:
    text = "vllm:gpu_cache_usage_perc 0.1\nvllm:kv_cache_usage_perc 0.7\n"
    assert parse_figures(text).kv_ratio == 0.7


def test_a_name_that_only_begins_alike_is_another() -> None:
    assert parse_figures("vllm:num_requests_running_max 9\ntgi_queue_size_total 3\n") == UNKNOWN


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1e99", "many", "", '{a="b} 1', "1 soon"])
def test_a_figure_with_one_malformed_sample_is_unknown(value: str) -> None:
    text = f"vllm:num_requests_running 1\nvllm:num_requests_running {value}\n" + SGLANG
    assert parse_figures(text) == EngineFigures(None, 7, 0.25)


def test_a_ratio_above_one_is_unknown() -> None:
    assert parse_figures("vllm:kv_cache_usage_perc 55\n") == UNKNOWN


@given(st.text() | st.text(st.sampled_from(' {}="\\,.:0129-\n#\t')).map("tgi_queue_size{}".format))
def test_no_text_is_an_error(text: str) -> None:
    parse_figures(text)


@given(st.text(st.sampled_from(' {}="\\,.:ae0129-#\t')))
def test_no_sample_is_an_error(rest: str) -> None:
    figures = parse_figures(f"tgi_queue_size{{{rest}")
    assert figures.waiting is None or figures.waiting >= 0
