"""Kinds of iterations: those that are no training are not compared with those that are."""

from __future__ import annotations

TRAINING = frozenset({"", "train", "training", "step", "iteration", "iter", "normal", "compute"})


def is_training(kind: str) -> bool:
    """Return whether an iteration of this kind is training; without a kind it is."""
    return kind.strip().lower() in TRAINING
