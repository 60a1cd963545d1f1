"""Labelled series of iteration times, detectors to compare with, and their scores."""
"""Simulates fail-slow faults of trainings, and how much of the lost time mitigation saves."""
