"""Comparison of scheduling policies on traces: rules, protocols, cells and the page of results."""
