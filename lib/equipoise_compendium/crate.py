"""What the repository holds in the words of RO-Crate 1.1: reports, notebooks, inputs and files.

All of it is read from the manifests of the reports. A fact table among the inputs says which
upstream files it was made from, so that the crate leads from a report to these. The crate carries
the date of the release that ``CITATION.cff`` names, and no date where there is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

import yaml

from equipoise_compendium import facts, project, registry
from equipoise_compendium.settings import settings

NAME = "ro-crate-metadata.json"
_VERSION = "https://w3id.org/ro/crate/1.1"
_OWN_TERMS = {"sha256": "https://schema.org/sha256"}
_SPDX_LICENCES = {"MIT", "CC0-1.0", "CC-BY-4.0", "CC-BY-NC-4.0", "CC-BY-SA-4.0"}
_FORMATS = {
    ".csv": "text/csv",
    ".gz": "application/gzip",
    ".ipynb": "application/x-ipynb+json",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".tsv": "text/tab-separated-values",
    ".txt": "text/plain",
    ".yaml": "application/yaml",
    ".zip": "application/zip",
}
Entity = dict[str, Any]


# --- entities -------------------------------------------------------------------------------------


def _refer(names: Iterable[str]) -> list[Entity]:
    return [{"@id": name} for name in names]


def _references(entities: Iterable[Entity]) -> list[Entity]:
    return _refer(entity["@id"] for entity in entities)


def _unique(entities: Iterable[Entity]) -> list[Entity]:
    """Entities by their ids, each once: reports share inputs, and studies authors."""
    return list({entity["@id"]: entity for entity in entities}.values())


def _file(name: str, digest: str = "", **properties: Any) -> Entity:
    """A file in the repository, by its path there, or on the web, by its address."""
    identifier = name if "://" in name else quote(name)
    path = PurePosixPath(name)
    entity = {"@id": identifier, "@type": "File", "name": path.name}
    properties = {"encodingFormat": _FORMATS.get(path.suffix), "sha256": digest} | properties
    return entity | {key: value for key, value in properties.items() if value}


def _agent(person: Mapping[str, str]) -> Entity:
    # In a citation file, only an organisation has a name in one piece.
    if "name" in person:
        name, kind = person["name"], "Organization"
    else:
        name, kind = f"{person['given-names']} {person['family-names']}", "Person"
    return {"@id": f"#{quote(name)}", "@type": kind, "name": name}


def _work(reference: Mapping[str, Any]) -> list[Entity]:
    """A study that is recomputed, and its authors."""
    authors = [_agent(author) for author in reference["authors"]]
    if "doi" in reference:
        identifier = f"https://doi.org/{reference['doi']}"
    else:
        identifier = f"#{quote(reference['title'])}"
    work = {
        "@id": identifier,
        "@type": "ScholarlyArticle",
        "name": reference["title"],
        "datePublished": str(reference["year"]),
        "author": _references(authors),
    }
    return [work, *authors]


def _licence(name: str) -> str | Entity:
    """A licence: a reference to SPDX where it is listed there, else the registry's words."""
    if name in _SPDX_LICENCES:
        return {"@id": f"https://spdx.org/licenses/{name}"}
    return name


# --- reports --------------------------------------------------------------------------------------


def _input(name: str, digest: str, registered: Mapping[str, Any]) -> list[Entity]:
    """An input of a report; behind a fact table the files that it was made from."""
    row = registered.get(name.removeprefix("registry:"))
    if row is not None:
        upstream_file = _file(
            quote(row.url, safe="/:?=&%"),
            row.sha256,
            contentSize=row.bytes,
            license=_licence(row.licence),
            description=f"item {row.item}",
        )
        return [upstream_file]
    entity = _file(name, digest)
    # A source can be another fact table, which brings its own sources along.
    sources = [
        _input(source, source_digest, registered)
        for source, source_digest in facts.sources_of(name).items()
    ]
    if sources:
        entity["isBasedOn"] = _references(entities[0] for entities in sources)
    return [entity, *chain.from_iterable(sources)]


def _report(manifest: Mapping[str, Any], registered: Mapping[str, Any]) -> list[Entity]:
    """A report, its notebook, what it was made from, its files, and the run that made them."""
    name = manifest["notebook"]
    source = f"notebooks/{name}.ipynb"
    folder = f"reports/{name}/"
    inputs = [
        _input(input_name, digest, registered) for input_name, digest in manifest["inputs"].items()
    ]
    files = [_file(f"{folder}{file}", digest) for file, digest in manifest["outputs"].items()]
    report = {
        "@id": folder,
        "@type": "Dataset",
        "name": f"Report of {name}",
        "description": " ".join(manifest.get("answer", [])) or f"What {source} makes",
        "hasPart": _references(files),
    }
    run = {
        "@id": f"#run-{name}",
        "@type": "CreateAction",
        "name": f"equipoise build {name}",
        "instrument": {"@id": source},
        # The run read the fact tables, not the upstream files behind them.
        "object": _references(entities[0] for entities in inputs),
        "result": [{"@id": folder}],
        "agent": {"@id": "#equipoise"},
    }
    notebook = _file(source) | {
        "@type": ["File", "SoftwareSourceCode"],
        "programmingLanguage": "Python",
    }
    return [report, run, notebook, *chain.from_iterable(inputs), *files]


def _parts(manifests: Iterable[Mapping[str, Any]]) -> list[Entity]:
    """Every report with what belongs to it, and the files about all of them."""
    registered = {f"{row.item}/{row.path}": row for row in registry.entries().itertuples()}
    parts = []
    for manifest in manifests:
        parts += _report(manifest, registered)
    for name in ("ledger.csv", "claims.csv", "verdicts.csv", "findings.md"):
        path = f"reports/{name}"
        if (project.root() / path).is_file():
            parts.append(_file(path))
    return _unique(parts)


# --- the repository -------------------------------------------------------------------------------


def _dataset(
    citation: Mapping[str, Any], works: Iterable[list[Entity]], parts: Iterable[Entity]
) -> Entity:
    """The repository itself, which cites the studies and holds the parts."""
    files = []
    runs = []
    for entity in parts:
        # A run is an event: it is mentioned, but nothing that a folder holds.
        if entity["@type"] == "CreateAction":
            runs.append(entity)
        else:
            files.append(entity)
    dataset = {
        "@id": "./",
        "@type": "Dataset",
        "name": citation["title"],
        "description": settings().description,
        "version": str(citation["version"]),
        "license": {"@id": f"https://spdx.org/licenses/{citation['license']}"},
        "author": _references(_agent(author) for author in citation["authors"]),
        "citation": _references(work[0] for work in works),
        "hasPart": _references(files),
        "mentions": _references(runs),
    }
    if "date-released" in citation:
        dataset["datePublished"] = str(citation["date-released"])
    return dataset


def text(manifests: Iterable[Mapping[str, Any]]) -> str:
    """The metadata of a repository with these reports; empty where it has no ``CITATION.cff``."""
    path = project.root() / "CITATION.cff"
    if not path.is_file():
        return ""
    citation = yaml.safe_load(path.read_text(encoding="utf-8"))
    works = [_work(reference) for reference in citation.get("references", [])]
    authors = [_agent(author) for author in citation["authors"]]
    parts = _parts(manifests)
    dataset = _dataset(citation, works, parts)
    metadata = {
        "@id": NAME,
        "@type": "CreativeWork",
        "conformsTo": {"@id": _VERSION},
        "about": {"@id": "./"},
    }
    software = {
        "@id": "#equipoise",
        "@type": "SoftwareApplication",
        "name": "Equipoise",
        "version": dataset["version"],
    }
    licence = dataset["license"] | {"@type": "CreativeWork", "name": citation["license"]}
    people_and_works = _unique([*authors, *chain.from_iterable(works)])
    graph = [metadata, dataset, software, licence, *people_and_works, *parts]
    crate = {"@context": [f"{_VERSION}/context", _OWN_TERMS], "@graph": graph}
    return json.dumps(crate, indent=1, ensure_ascii=False) + "\n"
