"""The three groups of people who work on the catalog. Superusers may do everything anyway."""

from collections.abc import Iterable, Mapping

from django.contrib.auth.models import Group, Permission

VIEWER, EDITOR, PUBLISHER = "Catalog viewer", "Catalog editor", "Catalog publisher"
TABLES = ("accelerator", "provider", "region", "server", "fabric", "costline", "offer")
LOOK = (*TABLES, "catalogrevision", "importjob", "feed", "printedname")


def _named(action: str, models: Iterable[str]) -> set[str]:
    return {f"{action}_{model}" for model in models}


_VIEW = _named("view", LOOK)
_EDIT = (
    _VIEW
    | _named("add", TABLES)
    | _named("change", TABLES)
    | {"view_draft", "change_draft", "add_importjob", "change_printedname"}
)
_PUBLISH = (
    _EDIT | _named("delete", TABLES) | {"publish_catalog", "change_importjob", "add_feed", "change_feed", "delete_feed"}
)
PERMISSIONS: Mapping[str, set[str]] = {VIEWER: _VIEW, EDITOR: _EDIT, PUBLISHER: _PUBLISH}
"""Group -> permissions of the catalog. What an editor adds or changes is a draft; only a publisher's counts at once."""


def ensure_groups() -> None:
    """Create the groups and give each what it should have. What somebody has added to a group by hand stays."""
    known = {p.codename: p for p in Permission.objects.filter(content_type__app_label="catalog")}
    for name, codenames in PERMISSIONS.items():
        group, _created = Group.objects.get_or_create(name=name)
        group.permissions.add(*(known[code] for code in sorted(codenames) if code in known))
