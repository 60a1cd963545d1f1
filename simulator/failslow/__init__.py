"""Labelled series of iteration times, detectors to compare with, and their scores."""
