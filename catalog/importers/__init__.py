"""Readers of other people's price lists: pure, streaming, no database."""
