"""The client of the REST API: which installation, requests, answers of commands."""
