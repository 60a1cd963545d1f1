"""A real LLM engine for tests and measurements: llama.cpp with a model of random weights."""
