"""Guards the source distribution: whoever unpacks it can run the tests."""

from __future__ import annotations

import tomllib
from pathlib import Path

from equipoise_compendium import project
from equipoise_compendium.source_distribution import SourceDistribution, beside_the_packages


def test_the_tests_and_what_they_read_are_in_the_source_distribution(tmp_path: Path) -> None:
    names = set(beside_the_packages(project.root()))
    assert {"tests/good_files.py", "data/registry.tsv", "tox.ini", "constraints.txt"} <= names
    assert f"tests/equipoise_compendium/{Path(__file__).name}" in names
    with (project.root() / "pyproject.toml").open("rb") as file:
        setuptools_settings = tomllib.load(file)["tool"]["setuptools"]
    path = f"{SourceDistribution.__module__}.{SourceDistribution.__qualname__}"
    assert setuptools_settings["cmdclass"] == {"sdist": path}

    for name in ("CITATION.cff", "constraints.txt", "environment.yml", "tox.ini"):
        (tmp_path / name).touch()
    for name in ("tests/a.py", "tests/__pycache__/a.pyc", "data/.cache/x", "notebooks/n.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    copied = beside_the_packages(tmp_path)
    assert [name for name in copied if "/" in name] == ["tests/a.py", "notebooks/n.ipynb"]
