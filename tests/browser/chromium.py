"""Debian's Chromium, as Playwright starts it, and what it complains about."""

import shutil
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import Page

CHROMIUM = shutil.which("chromium")
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking"]


@dataclass(slots=True)
class Complaints:
    """What must stay empty: console errors, blocked content, requests to other hosts."""

    console: list[str] = field(default_factory=list)
    other_hosts: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.on("console", lambda message: self.console.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.console.append(str(error)))
        page.on("request", lambda request: self._request(request.url))

    def _request(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "data" and parts.hostname != "localhost":
            self.other_hosts.append(url)
