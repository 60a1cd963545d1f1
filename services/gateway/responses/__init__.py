"""Answers of the API: errors as problems, and the descriptions in OpenAPI."""
