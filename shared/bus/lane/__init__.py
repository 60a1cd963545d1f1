"""One lane: its rounds are decided and appended."""
