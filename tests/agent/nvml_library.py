"""The made-up library of the driver, compiled for tests."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "linux" / "nvml_stub.c"


def compiled(folder: Path) -> str:
    """Return the path of the library, below `folder`; skips the test without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    path = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", path, SOURCE], check=True)
    return str(path)
