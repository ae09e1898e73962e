"""The source distribution: the packages, and what their tests read."""

from __future__ import annotations

from pathlib import Path

from setuptools.command.sdist import sdist  # type: ignore[import-untyped,unused-ignore]

FOLDERS = ("tests", "data", "notebooks")
FILES = ("CITATION.cff", "constraints.txt", "environment.yml", "tox.ini")


def beside_the_packages(root: Path) -> list[str]:
    """The files of a clone that its tests read, without what running them has left."""
    paths = [root / name for name in FILES]
    for folder in FOLDERS:
        paths += sorted((root / folder).rglob("*"))
    names = []
    for path in paths:
        parts = path.relative_to(root).parts
        is_left_over = any(part.startswith((".", "__pycache__")) for part in parts)
        if path.is_file() and not is_left_over:
            names.append("/".join(parts))
    return names


class SourceDistribution(sdist):  # type: ignore[misc,unused-ignore]
    """The command of setuptools, with the tests and what they read."""

    def make_distribution(self) -> None:
        """Pack the files that setuptools knows, and those beside them."""
        self.filelist.extend(beside_the_packages(Path.cwd()))
        super().make_distribution()
