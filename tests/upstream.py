"""Upstream files that tests read: those on this machine, by mirror or cache; none is downloaded."""

import pytest

from equipoise_compendium import registry


def skip_without(*items: str) -> None:
    """Skip the module or test that calls this, unless every file of the items is here."""
    entries = registry.entries()
    for item in items:
        files = entries[entries["item"] == item]
        if any(registry.verify(file) == "not here" for _, file in files.iterrows()):
            pytest.skip(
                f"needs the upstream files of {item}: name a mirror by EQUIPOISE_MIRROR",
                allow_module_level=True,
            )
