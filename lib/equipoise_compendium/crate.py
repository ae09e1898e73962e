"""What the repository holds in the words of RO-Crate 1.1: reports, notebooks, inputs and files, from the manifests.

It carries the date of the release that ``CITATION.cff`` names, and no date where there is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from equipoise import plain_yaml
from equipoise_compendium import project, registry

NAME = "ro-crate-metadata.json"
_VERSION = "https://w3id.org/ro/crate/1.1"
_OWN_TERMS = {"sha256": "https://schema.org/sha256"}
_LICENCES = {"MIT", "CC0-1.0", "CC-BY-4.0", "CC-BY-NC-4.0"}
_FORMATS = {
    ".csv": "text/csv",
    ".gz": "application/gzip",
    ".ipynb": "application/x-ipynb+json",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".md": "text/markdown",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".tsv": "text/tab-separated-values",
    ".txt": "text/plain",
    ".yaml": "application/yaml",
    ".zip": "application/zip",
}
Entity = dict[str, Any]


def _refer(names: Iterable[str]) -> list[Entity]:
    return [{"@id": name} for name in names]


def _file(name: str, digest: str = "", **more: Any) -> Entity:
    """A file in the repository, by its path there, or on the web, by its address."""
    path = name if "://" in name else quote(name)
    known = {"encodingFormat": _FORMATS.get(PurePosixPath(name).suffix), "sha256": digest} | more
    entity = {"@id": path, "@type": "File", "name": PurePosixPath(name).name}
    return entity | {key: value for key, value in known.items() if value}


def _agent(person: Mapping[str, str]) -> Entity:
    name = person.get("name") or f"{person['given-names']} {person['family-names']}"
    kind = "Organization" if "name" in person else "Person"
    return {"@id": f"#{quote(name)}", "@type": kind, "name": name}


def _work(reference: Mapping[str, Any]) -> list[Entity]:
    """A study that is recomputed, and its authors."""
    authors = [_agent(author) for author in reference["authors"]]
    doi = (
        f"https://doi.org/{reference['doi']}"
        if "doi" in reference
        else f"#{quote(reference['title'])}"
    )
    year = str(reference["year"])
    work = {
        "@id": doi,
        "@type": "ScholarlyArticle",
        "name": reference["title"],
        "datePublished": year,
    }
    return [work | {"author": _refer(author["@id"] for author in authors)}, *authors]


def _inputs(manifest: Mapping[str, Any], registered: Mapping[str, Any]) -> list[Entity]:
    entities = []
    for name, digest in manifest["inputs"].items():
        row = registered.get(name.removeprefix("registry:"))
        if row is None:
            entities.append(_file(name, digest))
            continue
        licence = (
            row.licence
            if row.licence not in _LICENCES
            else {"@id": f"https://spdx.org/licenses/{row.licence}"}
        )
        url = quote(row.url, safe="/:?=&%")
        entities.append(
            _file(
                url,
                row.sha256,
                contentSize=row.bytes,
                license=licence,
                description=f"item {row.item}",
            )
        )
    return entities


def _report(manifest: Mapping[str, Any], registered: Mapping[str, Any]) -> list[Entity]:
    """A report, its notebook, what it was made from, its files, and the run that made them."""
    name = manifest["notebook"]
    source, folder = f"notebooks/{name}.ipynb", f"reports/{name}/"
    inputs = _inputs(manifest, registered)
    files = [_file(f"{folder}{file}", digest) for file, digest in manifest["outputs"].items()]
    said = " ".join(manifest.get("answer", [])) or f"What {source} makes"
    report: Entity = {
        "@id": folder,
        "@type": "Dataset",
        "name": f"Report of {name}",
        "description": said,
    }
    run: Entity = {
        "@id": f"#run-{name}",
        "@type": "CreateAction",
        "name": f"equipoise build {name}",
    }
    notebook = _file(source) | {
        "@type": ["File", "SoftwareSourceCode"],
        "programmingLanguage": "Python",
    }
    run |= {"instrument": {"@id": source}, "object": _refer(each["@id"] for each in inputs)}
    run |= {"result": [{"@id": folder}], "agent": {"@id": "#equipoise"}}
    return [
        report | {"hasPart": _refer(file["@id"] for file in files)},
        run,
        notebook,
        *inputs,
        *files,
    ]


def text(manifests: Iterable[Mapping[str, Any]]) -> str:
    """The metadata of a repository with these reports; empty where it has no ``CITATION.cff``."""
    path = project.root() / "CITATION.cff"
    if not path.is_file():
        return ""
    citation = plain_yaml.load(path.read_text(encoding="utf-8"), plain_yaml.Values)
    registered = {f"{row.item}/{row.path}": row for row in registry.entries().itertuples()}
    works = [_work(reference) for reference in citation["references"]]
    authors = [_agent(author) for author in citation["authors"]]
    licence = f"https://spdx.org/licenses/{citation['license']}"
    own = [_file(f"reports/{name}") for name in ("ledger.csv", "claims.csv", "findings.md")]
    parts = [entity for manifest in manifests for entity in _report(manifest, registered)]
    parts += [entity for entity in own if (project.root() / entity["@id"]).is_file()]
    parts = list({entity["@id"]: entity for entity in parts}.values())
    held = [entity["@id"] for entity in parts if entity["@type"] != "CreateAction"]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": citation["title"],
        "description": "Tables and figures of four studies computed again: the reports, "
        "and the inputs they were made from",
        "version": str(citation["version"]),
        "license": {"@id": licence},
        "author": _refer(author["@id"] for author in authors),
        "citation": _refer(work[0]["@id"] for work in works),
        "hasPart": _refer(held),
        "mentions": _refer(entity["@id"] for entity in parts if entity["@type"] == "CreateAction"),
    }
    if "date-released" in citation:
        root["datePublished"] = str(citation["date-released"])
    about = {
        "@id": NAME,
        "@type": "CreativeWork",
        "conformsTo": {"@id": _VERSION},
        "about": {"@id": "./"},
    }
    equipoise = {
        "@id": "#equipoise",
        "@type": "SoftwareApplication",
        "name": "Equipoise",
        "version": root["version"],
    }
    rights = {"@id": licence, "@type": "CreativeWork", "name": citation["license"]}
    people = {entity["@id"]: entity for entities in [authors, *works] for entity in entities}
    graph = [about, root, equipoise, rights, *people.values(), *parts]
    whole = {"@context": [f"{_VERSION}/context", _OWN_TERMS], "@graph": graph}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
