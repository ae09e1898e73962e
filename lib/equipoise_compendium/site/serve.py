"""The reports served to this machine only, for reading the site over HTTP."""

from __future__ import annotations

import functools
import http.server
import io
import re
from pathlib import Path
from typing import Any, BinaryIO

from equipoise_compendium import project

_OWN_NAMES = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?", re.IGNORECASE)


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files to the address it is bound to, under its own names only, and says nothing."""

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        if not _OWN_NAMES.fullmatch(self.headers.get("Host", "")):
            # A page elsewhere could let a name of its own point to this machine.
            self.send_error(403, "this server answers to localhost only")
        elif self.path == "/":
            self.send_response(302)
            self.send_header("Location", "/site/index.html")
            self.end_headers()
        elif not self._within():
            self.send_error(404, "no such file among the reports")
        else:
            return super().send_head()
        return None

    def _within(self) -> bool:
        """Whether the path, and the page that a folder shows, lie among the reports."""
        try:
            path = Path(self.translate_path(self.path))
            reports = Path(self.directory).resolve()
            # Resolved, so that a link that leads out of the reports is not followed.
            candidates = (path, path / "index.html", path / "index.htm")
            return all(file.resolve().is_relative_to(reports) for file in candidates)
        except (OSError, RuntimeError, ValueError):  # a name too long, links in a loop, a null byte
            return False

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the method it replaces
        """Keep quiet."""


def server(port: int = 0) -> http.server.ThreadingHTTPServer:
    """Server of the reports on 127.0.0.1, not yet serving; its port is by default a free one."""
    reports = project.root() / "reports"
    if not (reports / "site" / "index.html").is_file():
        raise FileNotFoundError("reports/site has not been made: run equipoise build")
    handler = functools.partial(_Handler, directory=str(reports))
    return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
