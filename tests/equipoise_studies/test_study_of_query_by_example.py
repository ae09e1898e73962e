"""Chapter 2 from a config: tiny SciDocs and CSFCube, from a folder to the compared report."""

import json
import random
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from commands import called
from equipoise.problems import InputError
from equipoise_compendium import build, project, registry
from equipoise_compendium.printed import printed_table
from equipoise_compendium.provenance import REPORT_FOLDER_VARIABLE, VARIANT_VARIABLE
from equipoise_studies.config import read_config
from equipoise_studies.query_by_example import record
from equipoise_studies.query_by_example.data import text_of
from equipoise_studies.query_by_example.study import Study
from equipoise_studies.query_by_example.systems import lexical_scores
from equipoise_studies.systems.tokenisation import ANALYSERS
from killed_studies import KilledStudy, end_as_uninterrupted
from small_berts import small_bert

THESIS = yaml.safe_load(
    (project.root() / "data" / "studies" / "query_by_example" / "thesis.yaml").read_text()
)
TASKS = ("coview", "coread", "cocite", "cite")
WORDS = [
    "graph",
    "query",
    "paper",
    "rank",
    "model",
    "index",
    "term",
    "user",
    "proof",
    "cell",
    "gene",
    "robot",
]
SMALL: dict[str, Any] = {
    "stands_for": "thesis",
    "collection": {"kind": "scidocs", "folder": "scidocs", "trained_on": 0.85},
    "word_pieces": {},
    "systems": {},
    "record": "recorded",
}
WITH_WEIGHTS = ("config.json", "tokenizer.json", "model.safetensors")


def scidocs_in(folder: Path, papers_there: int = 80, tested: int = 9) -> None:
    """Papers; seven validation queries a task, and test queries, two of seven relevant."""
    draw = random.Random(2)  # noqa: S311
    papers = {
        f"p{number}": {
            "title": " ".join(draw.choices(WORDS, k=3)),
            "abstract": None if number == 5 else " ".join(draw.choices(WORDS, k=8)),
        }
        for number in range(papers_there)
    }
    for task in TASKS:
        (folder / task).mkdir(parents=True)
        asked = draw.sample(list(papers), 7 + tested)
        for stem, queries in (("val", asked[:7]), ("test", asked[7:])):
            lines = [
                f"{query} 0 {document} {int(place < 2)}\n"
                for query in queries
                for place, document in enumerate(
                    draw.sample([paper for paper in papers if paper != query], 7)
                )
            ]
            (folder / task / f"{stem}.qrel").write_text("".join(lines))
    (folder / "paper_metadata_view_cite_read.json").write_text(json.dumps(papers))


def csfcube_in(folder: Path) -> None:
    """Six query papers in every facet, with six candidates graded 0 to 3."""
    draw = random.Random(3)  # noqa: S311
    texts = {
        str(number): (f"T{number}", " ".join(draw.choices(WORDS, k=9))) for number in range(1, 60)
    }
    splits, rule = {}, "=" * 30
    (folder / "readable_annotations").mkdir(parents=True)
    (folder / "eval_scripts" / "sample_ranked_pools").mkdir(parents=True)
    for facet in ("background", "method", "result"):
        pools, near, names = {}, {}, [f"{query}_{facet}" for query in range(1, 7)]
        for query in range(1, 7):
            found, grades = draw.sample(list(texts)[6:], 6), [3, 2, 1, 0, 0, 0]
            pools[str(query)] = {"cands": found, "relevance_adju": grades}
            near[str(query)] = [[document, draw.random()] for document in found]
            lines = []
            for document, grade in [(str(query), None), *zip(found, grades, strict=True)]:
                title, abstract = texts[document]
                lines += [rule, f"paper_id: {document}; YEAR: 2001"]
                lines += [] if grade is None else [f"adju relevance: Similar (+{grade})"]
                lines += [f"TITLE: {title}", f"ABSTRACT: background_label: {abstract}", ""]
            (folder / "readable_annotations" / f"{query}-{facet}-adju.txt").write_text(
                "\n".join(lines)
            )
        (folder / f"test-pid2anns-csfcube-{facet}.json").write_text(json.dumps(pools))
        specter = (
            f"eval_scripts/sample_ranked_pools/test-pid2pool-csfcube-specter-{facet}-ranked.json"
        )
        (folder / specter).write_text(json.dumps(near))
        halves = names[:3], names[3:]
        splits[facet] = {
            "fold1_dev": halves[0],
            "fold1_test": halves[1],
            "fold2_dev": halves[1],
            "fold2_test": halves[0],
        }
    (folder / "evaluation_splits.json").write_text(json.dumps(splits))


@pytest.fixture
def config_in(tmp_path: Path) -> Callable[..., Path]:
    scidocs_in(tmp_path / "scidocs")

    def write(**changes: Any) -> Path:
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump(SMALL | changes, sort_keys=False))
        return path

    return write


def run(config: Path, *options: str) -> tuple[int, str]:
    folder = config.parent
    command = [
        "study",
        "query_by_example",
        "--config",
        str(config),
        "--work",
        str(folder / "work"),
        *options,
    ]
    result = called(*command, catch_exceptions=False)
    return result.exit_code, result.output


def report_of(config: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], Path]:
    for name in (VARIANT_VARIABLE, REPORT_FOLDER_VARIABLE, "PYTHONHASHSEED", "SOURCE_DATE_EPOCH"):
        monkeypatch.setenv(name, "")  # which the run sets, and the end of this test takes back
    folder = config.parent / "report"
    folder.mkdir()
    source = project.root() / "notebooks" / "thesis_ch2_query_by_example.ipynb"
    given = {"study": str(config), "resamples": 99}
    assert build.execute(str(source), given, str(folder)) == ("", "")
    manifest = json.loads((folder / "manifest.json").read_text())
    return {artefact["artefact"]: artefact for artefact in manifest["artefacts"]}, folder


def test_table_2_2_is_computed_on_scidocs_without_a_model(
    config_in: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_in()
    shutil.rmtree(config.parent / "scidocs")
    # as many queries as SciDocs has, so that it may be it
    scidocs_in(config.parent / "scidocs", papers_there=1000, tested=900)
    assert run(config)[0] == 0
    found, folder = report_of(config, monkeypatch)
    table_2 = found["thesis/table-2.2"]
    assert (table_2["basis"], table_2["cells"]) == ("recomputed", 80)
    nothing = [one for one in table_2["differences"] if not one["ours"]]
    assert len(nothing) == 4 * 8  # the word pieces
    assert len(table_2["differences"]) > len(nothing)
    assert "thesis/table-2.3" not in found
    ours = pd.read_csv(folder / "tables" / "thesis-table-2.2.csv").set_index("model")
    study = Study.read(str(config))
    ranked = study.scored(study.dataset())
    scored = ranked.judgements.merge(lexical_scores(ranked, ANALYSERS["STM2"], k1=2.75, b=1.0))
    for task, name in (("cite", "Cite"), ("coview", "Co-view")):
        test = ranked.splits[(ranked.splits["task"] == task) & (ranked.splits["part"] == "test")][
            "query"
        ]
        precise = []
        for query in test:
            rows = scored[(scored["task"] == task) & (scored["query"] == query)]
            grades = rows.sort_values(["score", "document"], ascending=False)["grade"].to_numpy()
            places = np.flatnonzero(grades) + 1
            precise.append(np.mean([np.arange(1, 3) / places]))
        assert len(precise) == 900
        assert ours.loc["BM25 STM2", f"{name} MAP"] == pytest.approx(
            100 * np.mean(precise), abs=1e-6
        )


def test_queries_that_are_trained_on_are_neither_ranked_nor_tuned_with(
    config_in: Callable[..., Path],
) -> None:
    study = Study.read(str(config_in()))
    dataset = study.dataset()
    counts = dataset.splits.groupby("part").size()
    assert counts.to_dict() == {"train": 4 * 6, "dev": 4, "test": 4 * 9}  # 85 % of seven
    trained = set(map(tuple, dataset.splits.query("part == 'train'")[["task", "query"]].to_numpy()))
    ranked = study.scored(dataset)
    assert not trained & set(map(tuple, ranked.judgements[["task", "query"]].to_numpy()))
    judged: dict[str, Any] = {"kind": "tilde", "printed": "TILDE BERT", "model": "tiny"}
    judged |= {"training": [{"pairs": "judgements", "epochs": 1, "batch": 2, "rate": 0.1}]}
    study = Study.read(str(config_in(systems={"tilde": judged}, each_task=True)))
    parts = study.parts(dataset, study.systems["tilde"], seed=1)
    assert sorted(part.name for part in parts) == sorted(TASKS)
    for part in parts:
        assert set(part.trained["task"]) == set(part.scored["task"]) == {part.name}
        assert not set(part.trained["query"]) & set(part.scored["query"])


def test_each_half_of_the_query_papers_is_scored_by_a_ranker_that_learned_from_the_other(
    tmp_path: Path,
) -> None:
    csfcube_in(tmp_path / "csfcube")
    judged: dict[str, Any] = {"kind": "tildev2", "label": "x", "model": "tiny"}
    judged |= {"training": [{"pairs": "judgements", "epochs": 1, "batch": 2, "rate": 0.1}]}
    changes = {"collection": {"kind": "csfcube", "folder": "csfcube"}, "systems": {"x": judged}}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(SMALL | changes | {"stands_for": "replica"}))
    study = Study.read(str(path))
    dataset = study.dataset()
    cuts = set()
    for seed in range(5):
        first, second = study.parts(dataset, study.systems["x"], seed)
        for part in (first, second):
            assert not set(part.trained["query"]) & set(part.scored["query"])
        assert len(first.scored) + len(second.scored) == 18
        assert set(first.scored["query"]) | set(second.scored["query"]) == set(dataset.queries)
        cuts.add(frozenset(first.scored["query"]))
    assert len(cuts) > 1


def test_what_is_asked_and_not_there_is_named_and_nothing_is_written(
    config_in: Callable[..., Path],
) -> None:
    config = config_in(systems=THESIS["systems"], word_pieces=THESIS["word_pieces"], each_task=True)
    code, told = run(config, "--dry-run")
    assert code == 0
    assert (
        "tokenizer.json and model.safetensors of the checkpoint scibert_scivocab_uncased in" in told
    )
    assert "cite.trec, a TREC run file" in told
    lacking = (
        "a GPU: the config asks for cuda"
        if find_spec("torch")
        else "PyTorch and transformers: pip install"
    )
    assert lacking in run(config_in(systems=THESIS["systems"], device="cuda"), "--dry-run")[1]
    config = config_in(systems=THESIS["systems"], word_pieces=THESIS["word_pieces"], each_task=True)
    code, told = run(config)
    assert code == 2
    assert "scibert_scivocab_uncased: found not at hand" in told.replace("\n", " ")
    assert not (config.parent / "work").exists()
    assert not (config.parent / "recorded").exists()
    code, told = run(config_in(collection={"kind": "scidocs", "folder": "nowhere"}))
    assert code == 2
    assert "nowhere" in told


def test_a_dry_run_without_data_plans_what_it_can_and_says_what_is_missing(
    config_in: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(item: str, path: str) -> Path:
        raise registry.DataUnreachable(f"{item}/{path} is not at hand")

    monkeypatch.setattr(registry, "fetch", unreachable)
    trained = {"pairs": "halves", "epochs": 1, "batch": 2, "rate": 0.1}
    system = {"kind": "tilde", "label": "x", "model": "tiny", "training": [trained]}
    csfcube = {"stands_for": "replica", "collection": {"kind": "csfcube"}}
    config = config_in(**csfcube, systems={"x": system})
    code, told = run(config, "--dry-run")
    assert code == 0
    assert "wanted first: csfcube/test-pid2anns-csfcube-background.json is not at hand" in told
    assert "x: 0 of 1 models recorded" in told
    # What is recorded needs no data.
    recorded = called("study", "query_by_example", "--dry-run", catch_exceptions=False)
    assert (recorded.exit_code, recorded.output.strip()) == (
        0,
        "all together: 1 of 1 records recorded",
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"x" * 50, "no safetensors file, or one that is cut off"),
        (b"\x02\0\0\0\0\0\0\0{}", "it holds no weights"),
        (
            b"\x38\0\0\0\0\0\0\0"
            + b'{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}'.ljust(56),
            "or is cut off",
        ),
    ],
)
def test_weights_that_are_none_are_refused(
    config_in: Callable[..., Path], content: bytes, said: str
) -> None:
    config = config_in(
        systems={"tilde": {"kind": "tilde", "printed": "TILDE BERT", "model": "tiny"}}
    )
    models = config.parent / "models"
    (models / "tiny").mkdir(parents=True)
    for name in WITH_WEIGHTS:
        (models / "tiny" / name).write_bytes(content if name == WITH_WEIGHTS[2] else b"{}")
    code, told = run(config, "--models", str(models))
    assert code == 2
    assert said in told


def checkpoint_in(folder: Path, projection: bool = False) -> None:
    """A small BERT, with the projection of TILDEv2 where it is asked for."""
    small_bert(folder, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, "extra", "##s"])
    import torch
    from safetensors.torch import load_file, save_file

    if projection:
        tensors = load_file(folder / "model.safetensors")
        tensors |= {"tok_proj.weight": torch.ones(1, 16), "tok_proj.bias": torch.ones(1)}
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def thesis_systems() -> dict[str, Any]:
    """The systems of the thesis's config, on a checkpoint made on the spot, for one epoch."""
    systems = {}
    for name, system in THESIS["systems"].items():
        made = system | (
            {"model": "projected" if "msmarco" in name else "tiny"} if "model" in system else {}
        )
        if "training" in system:
            made["training"] = [stage | {"epochs": 1, "batch": 8} for stage in system["training"]]
        systems[name] = made | ({"terms": 5} if "terms" in system else {})
    return systems


def thesis_in(config_in: Callable[..., Path], **changes: Any) -> Path:
    """The thesis's config at a small size, with checkpoints and run files made on the spot."""
    pieces = {"BERT-Token": {"tokenizer": "tiny"}, "SciBERT-Token": {"tokenizer": "projected"}}
    systems = {"systems": thesis_systems()} | changes
    config = config_in(**({"word_pieces": pieces, "each_task": True} | systems))
    for name in ("tiny", "projected"):
        checkpoint_in(config.parent / "models" / name, projection=name == "projected")
    (config.parent / "runs").mkdir(exist_ok=True)
    for task in TASKS:
        rows = []
        for stem in ("test", "val"):
            lines = (config.parent / "scidocs" / task / f"{stem}.qrel").read_text().splitlines()
            rows += [line.split() for line in lines]
        run_lines = [f"{query} Q0 {document} 1 {level} x\n" for query, _, document, level in rows]
        (config.parent / "runs" / f"{task}.trec").write_text("".join(run_lines))
    return config


def test_the_chapter_runs_end_to_end_on_a_stand_in_of_scidocs(
    config_in: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = thesis_in(config_in)
    models = "--models", str(config.parent / "models")
    code, told = run(config, *models)
    assert code == 0, told
    study = Study.read(str(config))
    stated = study.settings()
    assert stated["measured"]["tildev2_scibert_200.1"]["terms added"] > 0
    assert set(stated["models"]) == {"tiny", "projected"}
    before = {path.name: path.stat().st_mtime_ns for path in study.record.iterdir()}
    assert "all together: 1 of 1 records recorded" in run(config, *models)[1]
    assert before == {path.name: path.stat().st_mtime_ns for path in study.record.iterdir()}
    found, folder = report_of(config, monkeypatch)
    # nine queries a task are not SciDocs, whatever the config says
    for number in (1, 2, 3, 4):
        table = found[f"thesis/table-2.{number}"]
        assert (table["basis"], table["cells"]) == ("replica", 0)
        assert "9 test queries of coview, where SciDocs has about 1,000" in table["data"]
    perfect = pd.read_csv(folder / "tables" / "thesis-table-2.1.csv").set_index("model")
    assert (
        perfect.loc["Cross-Encoder MTFT-SciBERT"].filter(regex="MAP$") == 100
    ).all()  # its run is the judgements
    # so no claim of the thesis is judged on them
    assert not any(table["claims"] for table in found.values())
    # another setting of training is another record: the one that is there is neither taken nor
    # written over
    systems = thesis_systems()
    systems["tilde_bert"]["training"][0]["epochs"] = 2
    code, told = run(thesis_in(config_in, systems=systems), *models)
    assert code == 2, told
    assert "systems" in told
    assert before == {path.name: path.stat().st_mtime_ns for path in study.record.iterdir()}


KILLED = ("tilde_scibert", "tildev2_scibert_200", "cross_scibert", "cross_mtft")


def test_a_study_killed_at_each_kind_of_change_ends_as_one_that_is_not(
    config_in: Callable[..., Path],
) -> None:
    systems = {name: system for name, system in thesis_systems().items() if name in KILLED}
    # so many steps that weights are kept within a stage, too
    systems["tilde_scibert"]["training"][0] |= {"epochs": 18}
    pieces = {"SciBERT-Token": {"tokenizer": "tiny"}}
    changes = {"word_pieces": pieces, "each_task": False, "record": "out/recorded"}
    config = thesis_in(config_in, systems=systems, **changes)
    folder = config.parent / "out"
    command = ["study", "query_by_example", "--config", str(config)]
    command += ["--models", str(config.parent / "models"), "--work", str(folder / "work")]
    study = KilledStudy(folder)
    end_as_uninterrupted(study, command, recorded_in, at_least=22)


def recorded_in(folder: Path) -> dict[str, Any]:
    """The files of a record, without the time that each took."""
    record = {path.name: path.read_bytes() for path in folder.iterdir()}
    settings = json.loads(record["record.json"])
    for measured in settings["measured"].values():
        del measured["seconds"]
    return record | {"record.json": settings}


def test_the_replica_runs_end_to_end_on_a_stand_in_of_csfcube(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    csfcube_in(tmp_path / "csfcube")
    checkpoint_in(tmp_path / "models" / "tiny")
    replica = yaml.safe_load(
        (project.root() / "data" / "studies" / "query_by_example" / "replica.yaml").read_text()
    )
    for system in replica["systems"].values():
        system |= {"model": "tiny"} if "model" in system else {}
        for stage in system.get("training", ()):
            stage |= {"epochs": 1, "batch": 8, "papers": 30}
    replica["collection"]["folder"] = "csfcube"
    replica["word_pieces"]["BERT-Token"] = {"tokenizer": "tiny"}
    config = tmp_path / "config.yaml"
    replica |= {"record": "recorded", "seeds": [1, 2]}
    config.write_text(yaml.safe_dump(replica).replace("papers: 30", "papers: 50"))
    code, told = run(config, "--models", str(tmp_path / "models"))
    assert code == 2
    assert "50 papers to train on; the collection has 42" in told
    config.write_text(yaml.safe_dump(replica))
    code, told = run(config, "--models", str(tmp_path / "models"))
    assert code == 0, told
    found, _ = report_of(config, monkeypatch)
    assert found["thesis/table-2.1"]["basis"] == "replica"
    assert not found["thesis/table-2.1"]["differences"]
    study = Study.read(str(config))
    scores = study.scores(study.facts().judgements)
    for name in ("tildev2_minilm", "random"):
        assert not np.allclose(scores[f"{name}.1"], scores[f"{name}.2"])
    assert text_of(study.dataset().papers)["1"].startswith("T1 ")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"collection": {"kind": "scidocs"}}, "scidocs is read from a folder"),
        (
            {"collection": {"kind": "scidocs", "folder": "x", "trained_on": 1.0}},
            "a share of dev queries",
        ),
        ({"word_pieces": {"GPT": {}}}, "the word pieces are BERT-Token and SciBERT-Token"),
        ({"systems": {"x": {"kind": "tilde", "label": "x"}}}, "tilde has a model"),
        ({"systems": {"x": {"kind": "random", "model": "m"}}}, "a label, or the row of Table 2.1"),
        (
            {"systems": {"x": {"kind": "run file", "label": "x"}}},
            "a run file, and no other kind, has runs",
        ),
        ({"systems": {"x": {"kind": "random", "printed": "BERT"}}}, "Table 2.1 has no row 'BERT'"),
        (
            {"systems": {"x": {"kind": "specter", "label": "x"}}},
            "SPECTER's rankings are those of csfcube",
        ),
        (
            {"systems": {"x": {"kind": "cross-encoder", "label": "x", "model": "m"}}},
            "a cross-encoder is trained here",
        ),
        (
            {
                "systems": {
                    "x": {
                        "kind": "tildev2",
                        "label": "x",
                        "model": "m",
                        "expanded_by": "y",
                        "terms": 9,
                    }
                }
            },
            "x is expanded by y, which is no TILDE",
        ),
        (
            {"systems": {name: {"kind": "random", "printed": "TILDE BERT"} for name in "xy"}},
            "two rankers stand for",
        ),
        ({"device": "tpu"}, "column device: found 'tpu', wanted one of cpu, cuda"),
    ],
)
def test_a_bad_config_is_refused_by_its_place(
    config_in: Callable[..., Path], changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_config(config_in(**changes), Study)
    assert said in str(caught.value)


def test_committed_configs_are_read_and_the_replica_is_recorded() -> None:
    for config in ("replica", "replica_links"):
        replica = Study.read(config)
        assert replica.basis == "replica"
        (step,) = record.plan(replica, None, Path("work"))
        assert step.finished
        stated = replica.settings()
        assert set(stated["systems"]) <= set(replica.systems)
        wanted = {name for column in stated["systems"] for name in replica.columns(column)}
        assert set(stated["measured"]) == wanted
    thesis = Study.read("thesis")
    assert thesis.basis == "recomputed"
    rows = printed_table("thesis/table-2.1")["model"]
    assert set(thesis.rows(printed_table("thesis/table-2.1"))) == set(rows)
    with pytest.raises(InputError, match="replica, replica_links, thesis"):
        Study.read("another")
