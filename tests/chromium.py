"""A headless Chromium that tests drive by the DevTools protocol, through a pipe: one process for every page."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PROGRAM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--remote-debugging-pipe",
]
FLAGS += [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
]
NO_HOSTS = "--host-resolver-rules=MAP * ~NOTFOUND"
PATIENCE = 60.0
"""Seconds to wait for an answer or an event."""


class Browser:
    """One browser; each of its pages has cookies, cache and storage of its own."""

    def __init__(self, program: str, profile: Path) -> None:
        read, self._out = os.pipe()
        self._in, write = os.pipe()
        # the browser reads from its file 3 and writes to its file 4; ours stand out of the way of
        # both
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (read, write)]
        actions = [
            (os.POSIX_SPAWN_DUP2, end, number) for end, number in zip(ends, (3, 4), strict=True)
        ]
        quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
        command = [program, *FLAGS, NO_HOSTS, f"--user-data-dir={profile}", "about:blank"]
        self._process = os.posix_spawn(
            program, command, os.environ, file_actions=[*actions, *quiet]
        )
        for end in (read, write, *ends):
            os.close(end)
        self._count, self._rest = 0, b""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        os.close(self._out)
        os.close(self._in)
        os.kill(self._process, signal.SIGTERM)
        os.waitpid(self._process, 0)

    def _message(self) -> dict[str, Any]:
        """Return the next message of the browser."""
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            part = os.read(self._in, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError(
                    f"the browser has said nothing for {PATIENCE:.0f} s, or has gone"
                )
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol; events that come before its answer are kept."""
        self._count += 1
        asked = {"id": self._count, "method": method, "params": parameters} | (
            {"sessionId": session} if session else {}
        )
        text = json.dumps(asked).encode() + b"\0"
        while text:
            text = text[os.write(self._out, text) :]
        while (answer := self._message()).get("id") != self._count:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return dict(answer["result"])

    def await_event(self, method: str, session: str, after: int) -> None:
        """Wait for an event behind the first ``after`` that were kept."""
        while not any(
            e["method"] == method and e.get("sessionId") == session for e in self.events[after:]
        ):
            self.events.append(self._message())

    def open(self, url: str, width: int = 1200, height: int = 900) -> Page:
        """Open a page, loaded whole."""
        return Page(self, url, width, height)


class Page:
    """A page in a browser."""

    def __init__(self, browser: Browser, url: str, width: int, height: int) -> None:
        self._browser = browser
        self._context = browser.call("Target.createBrowserContext")["browserContextId"]
        target = browser.call(
            "Target.createTarget", url="about:blank", browserContextId=self._context
        )["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.look("light")
        self.resize(width, height)
        start = len(browser.events)
        self.call("Page.navigate", url=url)
        self.loaded(start)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol on this page."""
        return self._browser.call(method, self._session, **parameters)

    def loaded(self, after: int) -> None:
        """Wait until a page is there that was asked for behind the first ``after`` events."""
        self._browser.await_event("Page.loadEventFired", self._session, after)

    def close(self) -> None:
        """Forget the page and all that it left."""
        self._browser.call("Target.disposeBrowserContext", browserContextId=self._context)

    def resize(self, width: int, height: int = 900) -> None:
        """Give the window another size, in pixels; a phone's is narrower than any real window's."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def look(self, theme: str) -> None:
        """Be the page of a reader who likes it light, or dark, and without motion."""
        wanted = {"prefers-reduced-motion": "reduce", "prefers-color-scheme": theme}
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": name, "value": wanted[name]} for name in wanted],
        )

    def write(self, text: str) -> None:
        """Type a text where the focus is."""
        self.call("Input.insertText", text=text)

    def run(self, script: str) -> Any:
        """Value of an expression in the page; of a promise, what it comes to."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press and release Tab, Enter or an arrow."""
        code = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40}[key]
        known = {
            "key": key,
            "code": key,
            "windowsVirtualKeyCode": code,
            "modifiers": 8 if shift else 0,
        }
        self.call(
            "Input.dispatchKeyEvent", type="keyDown", text="\r" if key == "Enter" else "", **known
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", **known)

    def follow(self, key: str) -> None:
        """Press a key that leads to another page, and wait for that page."""
        start = len(self._browser.events)
        self.press(key)
        self.loaded(start)

    @property
    def dom(self) -> str:
        """The document as it is now."""
        return str(self.run("document.documentElement.outerHTML"))

    def _events(self, method: str) -> list[dict[str, Any]]:
        every = [
            e
            for e in self._browser.events
            if e["method"] == method and e.get("sessionId") == self._session
        ]
        return [dict(event["params"]) for event in every]

    @property
    def said(self) -> str:
        """Everything in the console: messages of scripts, errors, what the browser complains of."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return "\n".join(json.dumps(event) for kind in kinds for event in self._events(kind))

    @property
    def asked(self) -> list[str]:
        """Addresses on the network that the page has asked for."""
        urls = [event["request"]["url"] for event in self._events("Network.requestWillBeSent")]
        urls += [event["url"] for event in self._events("Network.webSocketCreated")]
        return [url for url in urls if url.startswith(("http:", "https:", "ws:", "wss:"))]
