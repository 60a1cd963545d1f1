"""Plans which LoRA adapters share an engine: a twin of the engine, a fast estimate, and a plan."""
