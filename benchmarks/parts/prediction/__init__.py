"""Predictors of run times, replayed strictly causally over traces."""
