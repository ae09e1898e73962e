"""Guards the public names of the library: people import all of them by a star."""

import copy
import inspect
import pydoc
import subprocess
import sys
from typing import Any

import equipoise
from equipoise import *  # noqa: F403


def test_every_public_name_is_imported_by_a_star() -> None:
    assert len(equipoise.__all__) > 40
    assert set(equipoise.__all__) <= set(globals())


def test_importing_a_function_of_tables_loads_nothing_that_takes_long() -> None:
    code = "import sys; from equipoise import gfr; print(*sys.modules)"
    words = [sys.executable, "-c", code]
    ended = subprocess.run(words, capture_output=True, text=True, check=True)
    assert {"pandas", "numpy", "pydantic", "scipy"}.isdisjoint(ended.stdout.split())


def test_a_function_of_tables_is_a_function_with_its_documentation() -> None:
    gfr: Any = equipoise.gfr
    assert list(inspect.signature(gfr).parameters)[:2] == ["runs", "qrels"]
    assert "Expected utility" in pydoc.render_doc(gfr)
    assert copy.deepcopy(gfr).__doc__ == gfr.__doc__
