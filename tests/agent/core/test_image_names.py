"""Names of images, as an engine that pulls them understands them."""

from __future__ import annotations

import pytest

from berth_agent.core.image_names import full_name

DIGEST = f"sha256:{'a1' * 32}"


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("python", "docker.io/library/python:latest"),
        ("python:3.12", "docker.io/library/python:3.12"),
        ("team/train:1", "docker.io/team/train:1"),
        ("docker.io/python", "docker.io/library/python:latest"),
        ("localhost/train", "localhost/train:latest"),
        ("r.example/a/b/c:2", "r.example/a/b/c:2"),
        ("r:5000/a", "r:5000/a:latest"),
        (f"python@{DIGEST}", f"docker.io/library/python@{DIGEST}"),
        (f"r.example/a:2@{DIGEST}", f"r.example/a@{DIGEST}"),
        ("0123456789ab", "docker.io/library/0123456789ab:latest"),
        ("a" * 64, f"docker.io/library/{'a' * 64}:latest"),
    ],
)
def test_a_name_means_one_image_of_one_registry(image: str, full: str) -> None:
    assert full_name(image) == full
    assert full_name(full) == full


@pytest.mark.parametrize(
    "image",
    ["", "a b", "dir:/etc", "docker://python", "--help", "r.example/../a", "a:b:c", "a@sha256:1"],
)
def test_what_is_no_name_is_refused(image: str) -> None:
    with pytest.raises(ValueError, match="is allowed"):
        full_name(image)
