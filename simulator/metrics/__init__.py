"""Measures of a schedule: pure functions over arrays of jobs, and intervals of differences."""
