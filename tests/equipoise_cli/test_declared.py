"""Guards the file of declared options, from which help is written without importing a measure.

``python tests/equipoise_cli/test_declared.py`` writes it.
"""

from __future__ import annotations

import json
import subprocess
import sys

import click

from equipoise_cli import main
from equipoise_cli.declared import KEPT, DeclaredCommand, lines_of


def functions(command: click.Command) -> set[str]:
    """The functions whose options the commands of a group have."""
    found: set[str] = set()
    if isinstance(command, click.Group):
        for one in command.commands.values():
            found |= functions(one)
    if isinstance(command, DeclaredCommand):
        found |= {source.function for source in command.declared}
    return found


def current() -> str:
    lines = {function: lines_of(function) for function in sorted(functions(main))}
    return json.dumps(lines, indent=1, ensure_ascii=False) + "\n"


def test_the_file_has_the_options_that_the_functions_declare() -> None:
    assert KEPT.read_text(encoding="utf-8") == current(), __doc__


def test_the_help_of_a_command_imports_no_measure() -> None:
    code = "import sys; from equipoise_cli import main;"
    code += "main(['compare', '--help'], standalone_mode=False); print('loaded', *sys.modules)"
    words = [sys.executable, "-c", code]
    ended = subprocess.run(words, capture_output=True, text=True, check=True)
    said, _, loaded = ended.stdout.partition("loaded")
    assert "--resamples" in said
    assert {"pandas", "numpy", "pydantic"}.isdisjoint(loaded.split())


if __name__ == "__main__":
    KEPT.write_text(current(), encoding="utf-8")
