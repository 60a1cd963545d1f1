"""Running jobs that go on elsewhere: from a node that is drained, or so that a larger job fits."""
