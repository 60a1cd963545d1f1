"""Asks services for their `/metrics` as Prometheus would, all at once and not for long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException

from prometheus_client.parser import text_string_to_metric_families

SCRAPE_S = 2.0
MOST_BYTES = 4 << 20

Samples = Mapping[str, list[tuple[Mapping[str, str], float]]]
"""Name as a query calls it -> labels and value of each series."""


@dataclass(frozen=True, slots=True)
class Scraped:
    """What one service said; `problem` says why it said nothing."""

    name: str
    samples: Samples = field(default_factory=dict)
    problem: str = ""

    def of(self, name: str) -> list[tuple[Mapping[str, str], float]]:
        return self.samples.get(name, [])

    def total(self, name: str) -> float | None:
        """Sum over all series; None where there is none."""
        found = [value for _, value in self.of(name)]
        return sum(found) if found else None

    def most(self, name: str) -> float | None:
        return max((value for _, value in self.of(name)), default=None)


def scrape_all(addresses: Mapping[str, str]) -> list[Scraped]:
    """`addresses`: service -> host:port. One entry for each, in their order."""
    if not addresses:
        return []
    with ThreadPoolExecutor(len(addresses)) as pool:
        return list(pool.map(scrape, addresses, addresses.values()))


def scrape(name: str, address: str) -> Scraped:
    """Never raises: a service that is away is part of the answer."""
    connection = HTTPConnection(address, timeout=SCRAPE_S)
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        body = response.read(MOST_BYTES)
        if response.status != 200:
            return Scraped(name, problem=f"answers {response.status}")
        return Scraped(name, samples_of(body.decode()))
    except (OSError, HTTPException, ValueError) as error:
        return Scraped(name, problem=f"does not answer ({type(error).__name__})")
    finally:
        connection.close()


def samples_of(text: str) -> Samples:
    """ValueError for what is no exposition of metrics."""
    found: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def quantile(scraped: Scraped, histogram: str, share: float) -> float | None:
    """Upper bound of the bucket in which the quantile lies, since the process began."""
    counts = dict(_buckets(scraped, histogram))
    total = counts.get(float("inf"), 0.0)
    if not total:
        return None
    return next((bound for bound in sorted(counts) if counts[bound] >= share * total), None)


def _buckets(scraped: Scraped, histogram: str) -> Iterator[tuple[float, float]]:
    counts: dict[float, float] = {}
    for labels, value in scraped.of(f"{histogram}_bucket"):
        bound = float(labels["le"])
        counts[bound] = counts.get(bound, 0.0) + value
    yield from counts.items()
