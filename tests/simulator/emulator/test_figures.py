"""The metrics are Prometheus text with vLLM's names, one type line per name."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from simulator.emulator.figures import EngineFigures, EngineGauges, exposition


def test_the_text_can_be_read_by_a_parser_of_prometheus() -> None:
    first, second = EngineFigures('a"b\\c', 0), EngineFigures("org/B", 1)
    first.first_token.observe(0.03)
    first.first_token.observe(5000.0, times=2)
    second.finished["stop"] = 4
    gauges = EngineGauges(running=3, waiting=2, kv_usage=0.25)
    text = exposition([(first, gauges), (second, gauges)])
    families = {family.name: family for family in text_string_to_metric_families(text)}
    running = families["vllm:num_requests_running"].samples
    assert [(item.labels["model_name"], item.value) for item in running] == [
        ('a"b\\c', 3.0),
        ("org/B", 3.0),
    ]
    assert [item.labels["engine"] for item in running] == ["0", "1"]
    assert {item.value for item in families["vllm:kv_cache_usage_perc"].samples} == {0.25}
    ended = families["vllm:request_success"].samples
    assert [item.value for item in ended if item.labels["finished_reason"] == "stop"] == [0, 4]
    latency = families["vllm:time_to_first_token_seconds"]
    rows = {
        item.labels.get("le", item.name.rpartition("_")[2]): item.value
        for item in latency.samples
        if item.labels["engine"] == "0"
    }
    assert (rows["0.02"], rows["0.04"], rows["2560.0"], rows["+Inf"]) == (0, 1, 1, 3)
    assert (rows["sum"], rows["count"]) == (10000.03, 3)
