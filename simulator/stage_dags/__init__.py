"""Jobs of dependent stages on executors that move between jobs: the world of Decima."""
