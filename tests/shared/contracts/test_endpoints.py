from __future__ import annotations

import pytest
from pydantic import ValidationError

from shared.contracts.endpoints import ConfigureEndpoint, EndpointConfigured, Upstream


@pytest.mark.parametrize("name", ["gpt-4o", "org/Model-7B", "llama3.1:8b", "a@b+c", "A"])
def test_models_have_the_names_that_clients_send(name: str) -> None:
    assert ConfigureEndpoint(endpoint=name).endpoint == name


@pytest.mark.parametrize("name", ["", "/model", "model/", "a b", "a\n", "x" * 129])
def test_a_name_that_no_client_sends_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        ConfigureEndpoint(endpoint=name)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000", "https://llm.example/base", "http://[::1]:8000"]
)
def test_the_address_of_an_upstream_is_a_base(url: str) -> None:
    assert Upstream(name="a", url=url).url == url


@pytest.mark.parametrize(
    "url", ["ftp://a", "http://user:word@host", "http://host?x=1", "http://host#x", "host:80"]
)
def test_an_address_with_credentials_or_a_query_is_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        Upstream(name="a", url=url)


def test_an_endpoint_is_reached_by_each_of_its_names() -> None:
    event = EndpointConfigured(endpoint="m", partition=0, aliases=("n",), adapters=("m-lora",))
    assert event.models == ("m", "n", "m-lora")
