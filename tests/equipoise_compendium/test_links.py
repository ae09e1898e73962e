"""Guards the project: no link out of it is written through, and a check writes nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import called
from equipoise_compendium import build, project, start
from equipoise_compendium.report import Report
from equipoise_compendium.site import pages
from small_repository import digest


def a_variant() -> None:
    list(build.build(["example"], {"size": "2"}))


def a_paper() -> None:
    start.new_paper("miller", "A paper")


WRITERS: list[tuple[str, Callable[[], object]]] = [
    ("reports/ledger.csv", build.write_summaries),
    ("reports/claims.csv", build.write_summaries),
    ("reports/site", pages.refresh),
    ("reports/site/index.html", pages.refresh),
    ("reports/site/assets", pages.refresh),
    ("reports/variants", a_variant),
    ("reports/variants/example", a_variant),
    ("reports/variants/by-hand", lambda: Report("example")),
    ("reports/variants/by-hand/example", lambda: Report("example")),
    ("data/published/artefacts.csv", a_paper),
    ("data/published/sources.bib", a_paper),
    ("data/published/miller", a_paper),
    ("data/facts", a_paper),
    ("notebooks", a_paper),
]


@pytest.mark.parametrize(("place", "write"), WRITERS)
def test_a_link_out_of_the_project_is_an_error(
    place: str,
    write: Callable[[], object],
    built: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pages.refresh()
    outside = tmp_path_factory.mktemp("outside")
    link, target = built / place, outside / Path(place).name
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.exists():
        link.rename(target)
    else:
        (target / "example").mkdir(parents=True)
        (target / "example" / "notes.txt").write_text("two years of work\n")
    link.symlink_to(target)
    before, inside_before = digest(outside), digest(built / "data")
    monkeypatch.setattr(pages, "pages", lambda *_: {"index.html": b"1", "assets/style.css": b"2"})
    with pytest.raises(ValueError, match="leads out of the folder"):
        write()
    assert digest(outside) == before
    assert digest(built / "data") == inside_before
    assert not list(built.rglob("*.equipoise-part"))


def test_new_removes_what_a_killed_process_left(built: Path) -> None:
    folder = built / "data" / "published" / "another"
    folder.mkdir(parents=True)
    left = folder / ".claims.csv-12ab34cd-999999999.equipoise-part"
    written_now = folder / f".claims.csv-12ab34cd-{os.getpid()}.equipoise-part"
    left.touch()
    written_now.touch()
    start.new_paper("kim2021", "Another paper")
    assert list(built.rglob("*.equipoise-part")) == [written_now]


def test_different_parameters_have_different_folders() -> None:
    texts = ["a/b", "a b", "a-b", "a:b", "x" * 80, "x" * 81, "x" * 82]
    assert len({build._slug({"words": text}) for text in texts}) == len(texts)
    assert build._slug({"patience": 600, "ordinal": "nmd"}) == "patience=600_ordinal=nmd"


def test_a_check_writes_nothing(built: Path) -> None:
    pages.refresh()
    path = built / "reports" / "example" / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"notebook": "../../elsewhere"}))
    shutil.copytree(path.parent, built.parent / "elsewhere")
    before = digest(built), digest(built.parent / "elsewhere")
    called("check")
    assert (digest(built), digest(built.parent / "elsewhere")) == before
    assert build.manifests()[0]["notebook"] == "example"
    assert project.root() == built
