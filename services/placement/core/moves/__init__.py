"""Running jobs that go on elsewhere: drain, migration and resize."""
