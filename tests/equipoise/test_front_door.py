"""Guards the public names of the library: people import all of them by a star."""

import equipoise
from equipoise import *  # noqa: F403


def test_every_public_name_is_imported_by_a_star() -> None:
    assert len(equipoise.__all__) > 40
    assert set(equipoise.__all__) <= set(globals())
