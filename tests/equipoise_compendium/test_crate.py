"""Guards the metadata for machines: every file once, with its sha256, every reference resolved."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pandas as pd
import pytest
from click.testing import CliRunner

from equipoise_cli import main
from equipoise_compendium import crate, project, registry

ROOT = project.root()


def manifests() -> list[dict[str, Any]]:
    return [
        json.loads(path.read_text()) for path in sorted((ROOT / "reports").glob("*/manifest.json"))
    ]


@pytest.fixture(scope="module")
def graph() -> dict[str, dict[str, Any]]:
    entities = json.loads(crate.text(manifests()))["@graph"]
    by_id = {entity["@id"]: entity for entity in entities}
    assert len(by_id) == len(entities)
    return by_id


def references(value: object) -> list[str]:
    if isinstance(value, dict):
        return (
            [value["@id"]]
            if set(value) == {"@id"}
            else [name for item in value.values() for name in references(item)]
        )
    return [name for item in value for name in references(item)] if isinstance(value, list) else []


def test_every_reference_leads_to_an_entity(graph: dict[str, dict[str, Any]]) -> None:
    about = graph.pop(crate.NAME)
    assert about["about"] == {"@id": "./"}
    assert about["conformsTo"]["@id"].endswith("/crate/1.1")
    named = {name for entity in graph.values() for name in references(entity)}
    assert {
        name for name in named - set(graph) if not name.startswith("https://spdx.org/licenses/")
    } == set()
    held = {part["@id"] for entity in graph.values() for part in entity.get("hasPart", [])}
    files = {name for name, entity in graph.items() if "File" in entity["@type"]}
    assert files <= held
    graph[crate.NAME] = about


def test_files_are_there_and_what_their_digests_say(graph: dict[str, dict[str, Any]]) -> None:
    local = {
        name: entity
        for name, entity in graph.items()
        if "File" in entity["@type"] and "://" not in name
    }
    assert len(local) > 300
    wrong = [
        name
        for name, entity in local.items()
        if "sha256" in entity and project.sha256(ROOT / unquote(name)) != entity["sha256"]
    ]
    assert wrong == []
    assert all((ROOT / unquote(name)).is_file() for name in local)


def test_inputs_from_elsewhere_are_those_of_the_registry(graph: dict[str, dict[str, Any]]) -> None:
    rows = {f"registry:{row.item}/{row.path}": row for row in registry.entries().itertuples()}
    for manifest in manifests():
        run = graph[f"#run-{manifest['notebook']}"]
        assert len(run["object"]) == len(manifest["inputs"])
        wanted = {rows[name].sha256 for name in manifest["inputs"] if name in rows}
        assert wanted <= {graph[each["@id"]]["sha256"] for each in run["object"]}
        assert run["instrument"] == {"@id": f"notebooks/{manifest['notebook']}.ipynb"}


def test_every_fact_table_leads_to_the_upstream_files_it_was_made_from() -> None:
    listed = {
        path.parent: pd.read_csv(path) for path in (ROOT / "data/facts").glob("*/sources.csv")
    }
    assert len(listed) == 6
    inputs = {
        (folder / table).relative_to(ROOT).as_posix(): project.sha256(folder / table)
        for folder, sources in listed.items()
        for table in sources["table"].unique()
    }
    report = {"notebook": "of_facts", "inputs": inputs, "outputs": {}}
    entities = json.loads(crate.text([report]))["@graph"]
    by_id = {entity["@id"]: entity for entity in entities}
    rows = {f"registry:{row.item}/{row.path}": row for row in registry.entries().itertuples()}
    for folder, sources in listed.items():
        for table, of_table in sources.groupby("table"):
            name = (folder / str(table)).relative_to(ROOT).as_posix()
            origins = [by_id[reference["@id"]] for reference in by_id[name]["isBasedOn"]]
            assert [origin["sha256"] for origin in origins] == of_table["sha256"].tolist()
            for source, origin in zip(of_table["source"], origins, strict=True):
                if not source.startswith("registry:"):
                    assert origin["@id"] == source
                    continue
                assert unquote(origin["@id"]) == unquote(rows[source].url)
                licence = origin["license"]
                if isinstance(licence, dict):
                    licence = licence["@id"].removeprefix("https://spdx.org/licenses/")
                assert licence == rows[source].licence
    # What the run has read is the fact table, and nothing behind it.
    assert {reference["@id"] for reference in by_id["#run-of_facts"]["object"]} == set(inputs)


def test_no_date_that_no_release_has(graph: dict[str, dict[str, Any]]) -> None:
    text = json.dumps(
        [entity for entity in graph.values() if entity["@type"] != "ScholarlyArticle"]
    )
    released = re.search(
        r"^date-released: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE
    )
    assert ("datePublished" in text) == (released is not None)


def test_there_is_none_without_a_citation_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(project, "root", lambda: tmp_path)
    assert crate.text([]) == ""


def test_the_command_writes_it_where_it_is_told(tmp_path: Path) -> None:
    target = tmp_path / "crate.json"
    assert CliRunner().invoke(main, ["crate", "-o", str(target)]).exit_code == 0
    assert target.read_text(encoding="utf-8") == crate.text(manifests())
