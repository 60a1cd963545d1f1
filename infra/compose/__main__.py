"""`python -m infra.compose`: see `containers.py`."""

from infra.compose.containers import main

main()
