"""Inputs of a lane: queued until they are accepted, and drawn for a round."""
