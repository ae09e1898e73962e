"""Guards the configs of the four chapters: what is wrong is refused, and each setting says why."""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from commands import called
from equipoise.problems import InputError
from equipoise_compendium import project, registry
from equipoise_studies.config import read_config

CHAPTERS = ("query_by_example", "satisfaction", "ranking_bias")
ABSENT = object()


def thesis(chapter: str) -> Path:
    return project.root() / "data" / "studies" / chapter / "thesis.yaml"


def study_of(chapter: str) -> Any:
    return importlib.import_module(f"equipoise_studies.{chapter}.study").Study


def changed(chapter: str, changes: dict[str, Any], folder: Path) -> Path:
    """A copy of a thesis's config with other values at some places."""
    config = yaml.safe_load(thesis(chapter).read_text())
    for place, value in changes.items():
        *above, name = [int(step) if step.isdigit() else step for step in place.split("/")]
        part = config
        for step in above:
            part = part[step]
        if value is ABSENT:
            del part[name]
        else:
            part[name] = value
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def problems_of(chapter: str, changes: dict[str, Any], folder: Path) -> dict[str, str]:
    """What is said of a config, by the place that it is said of."""
    with pytest.raises(InputError) as caught:
        read_config(changed(chapter, changes, folder), study_of(chapter))
    return {str(problem.column): str(problem) for problem in caught.value.problems}


STAGE = "systems/tilde_bert/training/0/"
STAGE_SAID = "systems.tilde_bert.training[0]."
WRONG: list[tuple[str, str, Any, str, str]] = [
    # --- numbers out of bounds
    ("query_by_example", f"{STAGE}epochs", -1, f"{STAGE_SAID}epochs", "'-1', wanted at least 1"),
    ("query_by_example", f"{STAGE}batch", 0, f"{STAGE_SAID}batch", "wanted at least 1"),
    ("query_by_example", f"{STAGE}rate", 0.0, f"{STAGE_SAID}rate", "wanted more than 0"),
    ("query_by_example", f"{STAGE}length", 0, f"{STAGE_SAID}length", "wanted at least 1"),
    ("query_by_example", "tolerance", -1.0, "tolerance", "wanted at least 0"),
    ("query_by_example", "collection/trained_on", 1.5, "collection", "lies in [0, 1)"),
    ("query_by_example", "threads", 0, "threads", "wanted at least 1"),
    (
        "satisfaction",
        "estimators/bert/training/epochs",
        -3,
        "estimators.bert.training.epochs",
        "-3",
    ),
    (
        "satisfaction",
        "estimators/bert/training/batch",
        0,
        "estimators.bert.training.batch",
        "least",
    ),
    ("satisfaction", "writer/tokens", 0, "writer.tokens", "wanted at least 1"),
    ("satisfaction", "tolerance", -1, "tolerance", "wanted at least 0"),
    ("ranking_bias", "depth", 0, "depth", "wanted at least 1"),
    ("ranking_bias", "tolerance", -0.5, "tolerance", "wanted at least 0"),
    ("ranking_bias", "processes", -1, "processes", "wanted at least 0"),
    # --- something twice
    ("query_by_example", "seeds", [1, 1], "seeds", "1 twice"),
    (
        "satisfaction",
        "estimators/bert/up_sampling",
        [1, 10, 10],
        "estimators.bert.up_sampling",
        "10",
    ),
    ("ranking_bias", "rankers/ance/worlds", ["original"] * 2, "rankers.ance.worlds", "twice"),
    ("ranking_bias", "rankers/sbert/printed", "ANCE", "rankers", "two for the row ANCE"),
    # --- names that are not there, with the nearest
    ("query_by_example", "tolerence", 1.0, "tolerence", "wanted tolerance, which is the nearest"),
    ("satisfaction", "writer/modle", "x", "writer.modle", "wanted model, which is the nearest"),
    (
        "ranking_bias",
        "query_sets/QS1/colection",
        "x",
        "query_sets.QS1.colection",
        "collection, which",
    ),
    ("ranking_bias", "baseline", "bm52", "baseline", "wanted bm25, which is the nearest"),
    ("query_by_example", "systems/tilde_bert/printed", "TILDE BRT", "None", "no row 'TILDE BRT'"),
    ("satisfaction", "estimators/bert/printed", "BRT", "estimators", "model of Table 3.6 BRT"),
    ("ranking_bias", "rankers/ance/printed", "ANSE", "rankers", "no row of Table 4.1, ANSE"),
    ("query_by_example", "device", "gpu", "device", "one of cpu, cuda"),
    ("satisfaction", "collections/SGD/upstream", "SGDD", "collections.SGD.upstream", "MWOZ, SGD"),
    # --- addresses and files
    (
        "satisfaction",
        "writer/endpoint",
        "api.openai.com/v1",
        "writer.endpoint",
        "plain http(s) url",
    ),
    ("ranking_bias", "rankers/bm25/runs", "bm25.trec", "rankers.bm25.runs", "a file for each"),
    # --- what does not go together
    ("satisfaction", "writer/endpoint", "", "writer.key_variable", "without an endpoint"),
    ("satisfaction", "writer/prices", [30], "writer.prices", "wanted two"),
    ("satisfaction", "writer/patience", -1, "writer.patience", "wanted at least 0"),
    ("query_by_example", "checkpoints/bert-base", "x", "checkpoints", "no checkpoint bert-base"),
    # --- a stand-in that calls itself the thesis, a record of another model
    ("query_by_example", "collection", {"kind": "csfcube"}, "collection", "not the thesis's"),
    ("satisfaction", "counterfactuals", "swapped", "counterfactuals", "not the thesis's"),
    (
        "ranking_bias",
        "query_sets/QS1",
        {"collection": "nqoracle"},
        "query_sets.QS1",
        "not the thesis",
    ),
    (
        "ranking_bias",
        "rankers/ance",
        {"kind": "dense", "model": "small", "about": "x", "printed": "ANCE"},
        "rankers.ance",
        "dense as run here, which is not the thesis's ANCE",
    ),
]


@pytest.mark.parametrize(("chapter", "place", "value", "column", "said"), WRONG)
def test_a_wrong_config_is_refused_at_its_place(
    chapter: str, place: str, value: Any, column: str, said: str, tmp_path: Path
) -> None:
    problems = problems_of(chapter, {place: value}, tmp_path)
    assert column in problems, problems
    assert said in problems[column]
    assert "mine.yaml" in problems[column]


@pytest.mark.parametrize(
    ("chapter", "changes", "columns"),
    [
        (
            "query_by_example",
            {"tolerance": -1.0, "tolerence": 1.0, "seeds": [], "collection": {"kind": "csfcube"}},
            {"tolerance", "tolerence", "seeds", "collection"},
        ),
        (
            "satisfaction",
            {"tolerance": -1, "recrod": "x", "estimators/bert/printed": "BRT"},
            {"tolerance", "recrod", "estimators"},
        ),
        (
            "ranking_bias",
            {"depth": 0, "bassline": "x", "baseline": "bm52", "rankers/ance/worlds": ["other"]},
            {"depth", "bassline", "baseline", "rankers.ance.worlds"},
        ),
    ],
)
def test_all_problems_of_a_config_are_said_at_once(
    chapter: str, changes: dict[str, Any], columns: set[str], tmp_path: Path
) -> None:
    """Those of single settings, those that are not known, and those that do not go together."""
    assert set(problems_of(chapter, changes, tmp_path)) == columns


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_copy_of_the_config_elsewhere_is_as_good(chapter: str, tmp_path: Path) -> None:
    copied = read_config(changed(chapter, {}, tmp_path), study_of(chapter))
    assert copied.stands_for == "thesis"
    assert copied.record == tmp_path / "recorded"


# --- six dry runs ---------------------------------------------------------------------------------

LISTED = {
    "query_by_example": (
        "SciDocs, four tasks: 0 of 1 collections at hand",
        "https://github.com/allenai/scidocs",
        "https://huggingface.co/google-bert/bert-base-uncased, 0.4 GB, Apache 2.0",
        "published as pytorch_model.bin and vocab.txt: to be saved again",
        "cross_mtft: 0 of 4 run files at hand",
        "All models together: about 8 h on an RTX 3090, or 40 days on two cores",
    ),
    "satisfaction": (
        "asap/dataset/mwoz/valid_mwoz.txt (1,199,560 bytes, licence: MIT)",
        "asap/dataset/sgd/test_sgd.txt (",
        "uss/dataset/MWOZ.txt (",
        "uss/dataset/SGD.txt (",
        "All calls together: 1,775, about 58 USD at most",
        "https://huggingface.co/HuggingFaceH4/zephyr-7b-beta, 15 GB, MIT",
        "a key with credit at the provider",
        "calls: 851, tokens of prompts about 695,093, of answers at most 127,650, about 29 USD",
        "ours: no printed cell is of it",
        "h on an RTX 3090, or",
    ),
    "ranking_bias": (
        "collectionandqueries.tar.gz (1.0 GB, unpacked 3.1 GB)",
        "of 8,841,823 documents recorded; the rest takes about",
        "Pyserini fetches the index by itself, 2.6 GB",
        "cds/data/cda_default_pairs.json (",
        "cds/data/names_pairs_1000_scaled.json (",
        "cpjku/resources/wordlist_gender_representative.txt (",
        "genderbias_ir/resources/queries_gender_annotated.csv (",
        "cpjku/dataset/msmarco_passage.dev.fair.tsv (",
        "All models together: about 2 h on an RTX 3090",
    ),
}
"""What a shopping list says of each chapter, of data that nobody has here."""


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_dry_run_with_nothing_at_hand_is_a_shopping_list_and_touches_nothing(
    chapter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EQUIPOISE_MIRROR", "")
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def no_connection(*_: object, **__: object) -> None:
        raise AssertionError("a plan downloads nothing")

    monkeypatch.setattr(registry, "_download", no_connection)
    work = tmp_path / "work"
    result = called("study", chapter, "--config", "thesis", "--dry-run", "--work", work)
    assert result.exit_code == 0, result.output
    for words in LISTED[chapter]:
        assert words in result.output, words
    assert list(tmp_path.iterdir()) == []
    # each checkpoint or page is described once, where it is wanted
    assert result.output.count("zephyr-7b-beta, 15 GB") <= 1
    assert result.output.count("google-bert/bert-base-uncased, 0.4 GB") <= 1


# --- every setting of the thesis's configs carries its place --------------------------------------

PLACE = re.compile(
    r"\bours\b|\bnot said\b|\bTables? \d\.\d|\bFigures? \d\.\d|\b(sections? )?\d\.(\d|[A-J])\b"
    r"|\bfootnote \d"
)


def scalars(node: yaml.Node | None, name: str = "", line: int = 0) -> list[tuple[str, int]]:
    """The settings of a config that hold no further ones, each with its last line."""
    if isinstance(node, yaml.MappingNode):
        settings = []
        for key, value in node.value:
            settings += scalars(value, key.value, key.start_mark.line)
        return settings
    if isinstance(node, yaml.SequenceNode) and isinstance(node.value[0], yaml.MappingNode):
        return [setting for item in node.value for setting in scalars(item)]
    return [(name, line)]


def settings_without_place(text: str) -> list[str]:
    """Settings whose line has no comment that names their place in the text, or says *ours*."""
    ours: set[str] = set()
    for names in re.findall(r"^# Ours throughout: (.*)$", text, re.MULTILINE):
        ours |= set(names.split(", "))
    lines = text.splitlines()
    lacking = []
    for name, line in scalars(yaml.compose(text)):
        _, _, comment = lines[line].partition("  #")
        if name not in ours and not PLACE.search(comment):
            lacking.append(f"line {line + 1}: {lines[line].strip()}")
    return lacking


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_setting_of_the_thesis_says_where_it_stands_or_that_it_is_ours(chapter: str) -> None:
    assert settings_without_place(thesis(chapter).read_text()) == []


def test_a_setting_without_its_place_is_found() -> None:
    text = "# Ours throughout: a\na: 1\nb: 2  # section 2.3: so\nc:\n  d: 3\n  e: 4  # because\n"
    assert settings_without_place(text) == ["line 5: d: 3", "line 6: e: 4  # because"]


def table_of_settings(chapter: str) -> list[list[str]]:
    """The rows of the guide's table of a chapter's settings, the header first."""
    guide = project.root() / "lib" / "equipoise_cli" / "guide" / "studies.md"
    title = chapter.replace("_", " ").capitalize()
    _, _, section = guide.read_text().partition(f"\n## {title}\n")
    section, _, _ = section.partition("\n## ")
    lines = section[section.index("| setting |") :].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_guide_sets_thesis_authors_config_and_code_side_by_side(chapter: str) -> None:
    (_, of_thesis, of_authors, of_config, of_code), _, *rows = table_of_settings(chapter)
    assert (of_thesis, of_config, of_code) == ("thesis", "config", "here")
    assert of_authors.startswith("code")
    text = thesis(chapter).read_text()
    named = 0
    for row in rows:
        assert len(row) == 5, row
        for setting in re.findall(r"`([^`]+)`", row[3]):
            name, _, value = setting.partition(":")
            values = re.findall(rf"\b{re.escape(name)}: *([^#,\n}}]*)", text)
            assert values, setting
            assert not value or value.strip() in [value.strip() for value in values], setting
            named += 1
    assert named >= 3


def plain(text: str) -> str:
    """A text by its letters and digits, which marks and ends of lines do not change."""
    return re.sub(r"[^a-z0-9]+", "", text.lower())


@pytest.mark.upstream
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_what_a_config_quotes_of_the_thesis_stands_in_it(chapter: str) -> None:
    mirror = os.environ.get("EQUIPOISE_MIRROR", "")
    papers = sorted((Path(mirror).parent / "papers").glob("001_*.txt")) if mirror else []
    if not papers:
        pytest.skip("the papers' texts, which are not published here, are not beside the mirror")
    text = plain(papers[0].read_text(encoding="utf-8"))
    quoted = []
    for line in thesis(chapter).read_text().splitlines():
        _, _, comment = line.partition("  #")
        quoted += re.findall(r'"([^"]+)"', comment)
    assert len(quoted) > 3
    for words in quoted:
        for part in words.split(" ... "):
            assert plain(part) in text, words
