"""What a browser would send of a page's form, untouched."""

from html.parser import HTMLParser

from django.http import QueryDict

Pair = tuple[str, str]


class _Form(HTMLParser):
    def __init__(self, of_class: str) -> None:
        super().__init__()
        self.of_class = of_class
        self.is_inside = False
        self.sent: list[Pair] = []
        self.select: str | None = None
        self.first: str | None = None
        self.chosen: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self.is_inside = self.of_class in (given.get("class") or "").split()
        if not self.is_inside:
            return
        if tag == "input":
            self._input(given)
        elif tag == "select":
            self.select, self.first, self.chosen = given.get("name"), None, None
        elif tag == "option":
            value = given.get("value") or ""
            self.first = value if self.first is None else self.first
            self.chosen = value if "selected" in given else self.chosen

    def _input(self, given: dict[str, str | None]) -> None:
        if given.get("type") in ("checkbox", "radio") and "checked" not in given:
            return
        self.sent.append((given.get("name") or "", given.get("value") or ("on" if "checked" in given else "")))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.is_inside = False
        if tag == "select" and self.is_inside and self.select:
            self.sent.append((self.select, self.chosen if self.chosen is not None else self.first or ""))


def as_sent(html: str, of_class: str = "description") -> dict[str, str | list[str]]:
    """Names and values of the form of this class; a name that is sent several times has a list."""
    reader = _Form(of_class)
    reader.feed(html)
    sent: dict[str, str | list[str]] = {}
    for name, value in reader.sent:
        if name not in sent:
            sent[name] = value
        else:
            before = sent[name]
            sent[name] = [*(before if isinstance(before, list) else [before]), value]
    return sent


def as_query(sent: dict[str, str | list[str]]) -> QueryDict:
    """The same as a view gets it."""
    query = QueryDict(mutable=True)
    for name, value in sent.items():
        query.setlist(name, value if isinstance(value, list) else [value])
    return query
