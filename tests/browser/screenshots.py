"""The pictures of the README: `make screenshots` while the service runs (`make run`)."""

import sys

from playwright.sync_api import sync_playwright

from tests.browser.chromium import ARGUMENTS, CHROMIUM
from tests.paths import REPOSITORY

IMAGES = REPOSITORY / "docs" / "images"
SHOTS = {
    "verdict.png": ("/studies/sample/", 820),
    "offers.png": ("/studies/sample/#offers", 900),
}
"""File name: address, and height of the window."""


def main(address: str) -> None:
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for name, (path, height) in SHOTS.items():
            page = browser.new_page(viewport={"width": 1200, "height": height})
            page.goto(address + path)
            page.wait_for_load_state("networkidle")
            page.screenshot(path=IMAGES / name)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000")
