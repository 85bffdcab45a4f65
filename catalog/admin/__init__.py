"""Editing the catalog. Forms save drafts; a publisher makes them part of the catalog, and the history keeps it all."""

from catalog.admin import accelerators, draft_list, feeds, imports, names, offers, providers, revisions, servers

__all__ = ["accelerators", "draft_list", "feeds", "imports", "names", "offers", "providers", "revisions", "servers"]
