"""The project's own rules of style, beside those of ruff: `python -m infra.lint`."""
