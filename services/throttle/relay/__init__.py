"""Reads requests of the OpenAI API and passes on, counts and assembles the answers of engines."""
