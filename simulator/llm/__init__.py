"""LLM serving: the timing of an engine that batches continuously."""
