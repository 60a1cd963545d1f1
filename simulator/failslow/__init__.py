"""Fail-slow on a virtual clock: detectors on labelled series, and mitigation of drawn faults."""
