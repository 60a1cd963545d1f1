"""Runs the pools of engines: looks at an engine, decides by the fold, and acts on it."""
