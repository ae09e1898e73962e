"""Pages in a headless Chromium of this machine, which Playwright drives, without network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser as Chromium

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PROGRAM = next(filter(None, map(shutil.which, PROGRAMS)), None)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
]


class Page:
    """A page with cookies, cache and storage of its own, loaded whole.

    It is the page of a reader who likes it light, and without motion.
    """

    def __init__(self, chromium: Chromium, url: str, width: int, height: int) -> None:
        self._context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme="light",
            reduced_motion="reduce",
        )
        self._page = self._context.new_page()
        self._session = self._context.new_cdp_session(self._page)
        self._messages: list[str] = []
        self._addresses: list[str] = []
        self._page.on("console", lambda message: self._messages.append(message.text))
        self._page.on("pageerror", lambda error: self._messages.append(str(error)))
        self._page.on("request", lambda request: self._addresses.append(request.url))
        self._page.on("websocket", lambda socket: self._addresses.append(socket.url))
        self._page.goto(url)

    def close(self) -> None:
        """Forget the page and all that it left."""
        self._context.close()

    def resize(self, width: int, height: int = 900) -> None:
        """Give the window another size, in pixels; a phone's is narrower than a real window's."""
        self._page.set_viewport_size({"width": width, "height": height})

    def look(self, *, dark: bool, printed: bool = False) -> None:
        """Be the page of a reader who likes it light, or dark, or on paper."""
        self._page.emulate_media(
            color_scheme="dark" if dark else "light", media="print" if printed else "screen"
        )

    def write(self, text: str) -> None:
        """Type a text where the focus is."""
        self._page.keyboard.insert_text(text)

    def run(self, script: str) -> Any:
        """Value of an expression in the page; of a promise, what it comes to.

        By the DevTools protocol itself, which the page's policy of contents does not bind.
        """
        answer = self._session.send(
            "Runtime.evaluate",
            {"expression": script, "returnByValue": True, "awaitPromise": True},
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """Click on the first that a selector finds and that can be seen, and wait for the page."""
        self._page.locator(selector).locator("visible=true").first.click()
        self._page.wait_for_load_state()

    def in_view(self, selector: str) -> bool:
        """Return whether the first that a selector finds and that can be seen is on the screen."""
        box = self._page.locator(selector).locator("visible=true").first.bounding_box()
        size = self._page.viewport_size
        return bool(box and size and box["y"] < size["height"] and box["y"] + box["height"] > 0)

    def copied(self) -> str:
        """What a button of the page has copied."""
        self._context.grant_permissions(["clipboard-read", "clipboard-write"])
        return str(self._page.evaluate("() => navigator.clipboard.readText()"))

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press and release Tab, Enter or an arrow."""
        self._page.keyboard.press(f"Shift+{key}" if shift else key)

    def follow(self, key: str) -> None:
        """Press a key that leads to another page, and wait for that page."""
        with self._page.expect_navigation():
            self.press(key)

    @property
    def dom(self) -> str:
        """The document as it is now."""
        return self._page.content()

    @property
    def said(self) -> str:
        """Everything in the console: messages of scripts, errors, complaints of the browser."""
        return "\n".join(self._messages)

    @property
    def asked(self) -> list[str]:
        """Addresses on the network that the page has asked for."""
        schemes = ("http:", "https:", "ws:", "wss:")
        return [address for address in self._addresses if address.startswith(schemes)]


class Browser:
    """One browser for many pages."""

    def __init__(self, chromium: Chromium) -> None:
        self._chromium = chromium

    def open(self, url: str, width: int = 1200, height: int = 900) -> Page:
        """Open a page, loaded whole."""
        return Page(self._chromium, url, width, height)


@contextmanager
def running(program: str) -> Iterator[Browser]:
    """A headless Chromium while the context is open."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield Browser(chromium)
        chromium.close()
