"""Jobs that go on elsewhere: migration, defragmentation and resize."""
