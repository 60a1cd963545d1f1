"""Lessons of ended jobs and of starts: run times, and intervals that hold."""
