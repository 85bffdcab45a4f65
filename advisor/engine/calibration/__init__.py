"""Measured facts that the engine's constants come from: one CSV each, every row with its source."""
