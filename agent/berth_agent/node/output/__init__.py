"""Output and measurements of workers, read from their files until they are sent."""
