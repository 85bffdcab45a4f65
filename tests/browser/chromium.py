"""Debian's Chromium, as Playwright starts it."""

import shutil

CHROMIUM = shutil.which("chromium")
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking"]
