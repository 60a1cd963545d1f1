"""`berth engine`: a server with the API and the timing of a continuously batching LLM engine."""
