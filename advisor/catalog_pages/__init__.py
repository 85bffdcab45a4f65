"""Catalog pages for buyers: browse, one server, side by side, and what NVLink has cost."""
