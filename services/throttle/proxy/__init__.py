"""The OpenAI API of the endpoints, over HTTP."""
