"""Scrapes the `/metrics` of services in parallel, with a short timeout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException

from prometheus_client.parser import text_string_to_metric_families

SCRAPE_TIMEOUT_S = 2.0
MAX_BYTES = 4 << 20

Samples = Mapping[str, list[tuple[Mapping[str, str], float]]]
"""Labels and value of each series, by metric name as in queries."""


@dataclass(frozen=True, slots=True)
class Scraped:
    """The metrics of one service; `problem` is the reason if there are none."""

    name: str
    samples: Samples = field(default_factory=dict)
    problem: str = ""

    def series(self, name: str) -> list[tuple[Mapping[str, str], float]]:
        return self.samples.get(name, [])

    def total(self, name: str) -> float | None:
        """Return the sum of all series; None without series."""
        values = [value for _, value in self.series(name)]
        return sum(values) if values else None

    def maximum(self, name: str) -> float | None:
        return max((value for _, value in self.series(name)), default=None)


def scrape_all(addresses: Mapping[str, str]) -> list[Scraped]:
    """Scrape all services, given as name -> host:port; the result has their order."""
    if not addresses:
        return []
    with ThreadPoolExecutor(len(addresses)) as pool:
        return list(pool.map(scrape, addresses, addresses.values()))


def scrape(name: str, address: str) -> Scraped:
    """Scrape one service; an unreachable one gives a `problem`, never an exception."""
    connection = HTTPConnection(address, timeout=SCRAPE_TIMEOUT_S)
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        body = response.read(MAX_BYTES)
        if response.status != 200:
            return Scraped(name, problem=f"answers {response.status}")
        return Scraped(name, samples_of(body.decode()))
    except (OSError, HTTPException, ValueError) as error:
        return Scraped(name, problem=f"does not answer ({type(error).__name__})")
    finally:
        connection.close()


def samples_of(text: str) -> Samples:
    """Return the samples; raises ValueError if the text is no metrics exposition."""
    samples: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append((sample.labels, sample.value))
    return samples


def quantile(scraped: Scraped, histogram: str, share: float) -> float | None:
    """Return the upper bound of the quantile's bucket since the process started; None if empty."""
    counts = dict(_buckets(scraped, histogram))
    total = counts.get(float("inf"), 0.0)
    if not total:
        return None
    return next((bound for bound in sorted(counts) if counts[bound] >= share * total), None)


def _buckets(scraped: Scraped, histogram: str) -> Iterator[tuple[float, float]]:
    counts: dict[float, float] = {}
    for labels, value in scraped.series(f"{histogram}_bucket"):
        bound = float(labels["le"])
        counts[bound] = counts.get(bound, 0.0) + value
    yield from counts.items()
