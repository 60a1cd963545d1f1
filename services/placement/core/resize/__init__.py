"""Elastic jobs that go on with more workers, or with fewer."""
