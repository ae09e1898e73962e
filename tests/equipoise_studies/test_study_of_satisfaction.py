"""Chapter 3 from a config: a stand-in of its data, an endpoint, annotators, a compared report."""

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import Result
from sklearn.metrics import cohen_kappa_score

from chat_server import Server, says
from commands import called
from equipoise.problems import InputError
from equipoise_compendium import build, project
from equipoise_compendium.provenance import REPORT_FOLDER_VARIABLE, VARIANT_VARIABLE
from equipoise_studies.config import read_config
from equipoise_studies.satisfaction import record, words
from equipoise_studies.satisfaction.annotation import Annotations, items_of
from equipoise_studies.satisfaction.asking import Reader
from equipoise_studies.satisfaction.study import Study
from killed_studies import KilledStudy, end_as_uninterrupted
from killed_writers import files

FOLDER = project.root() / "data" / "studies" / "satisfaction"
THESIS = yaml.safe_load((FOLDER / "thesis.yaml").read_text())
BOOKED, SORRY = "Yes, that is booked for you.", "Sorry, there is nothing."
TRAINING = {"steps": 2}
SMALL: dict[str, Any] = {
    "stands_for": "replica",
    "collections": {
        "MultiWOZ": {
            "dialogues": "one.txt",
            "valid": "valid.txt",
            "test": "test.txt",
            "about": "a stand-in",
        },
        "SGD": {"dialogues": "two.txt", "about": "another"},
    },
    "estimators": {
        "hawkes": {
            "kind": "hawkes",
            "about": "x",
            "up_sampling": [1, 10, 20],
            "training": TRAINING,
        },
        "few-shot": {
            "kind": "few-shot",
            "about": "y",
            "model": "tiny",
            "endpoint": "URL",
            "prompt": "label.txt",
        },
    },
    "writer": {"model": "tiny", "endpoint": "URL", "prompt": "write.txt", "annotations": "people"},
    "counterfactuals": "written",
    "record": "recorded",
}


def dialogues_in(
    folder: Path, one: int = 18, two: int = 0, exchanges: int = 6, further: int = 34
) -> None:
    """Dialogues of so many exchanges in either file; every fourth response dissatisfies.

    ``one``, ``two``: test samples of each, of the fourth exchange on; 0 for a file without parts.
    ``further``: dialogues beside the tested ones.
    """
    samples_of_one = exchanges - 3
    for name, seed, tested in (("one", 1, one), ("two", 2, two)):
        draw, lines = np.random.default_rng(seed), list[str]()
        parts: dict[str, list[str]] = {"valid": [], "test": []}
        test_dialogues = -(-tested // samples_of_one)
        for number in range(further + (test_dialogues or 6)):
            # the first has one exchange less for each sample too many
            too_many = 0 if number else samples_of_one * test_dialogues - tested
            turns = exchanges - too_many
            users = [
                f"Please book number {number} {turn} {draw.integers(99)}" for turn in range(turns)
            ]
            replies = [
                SORRY if draw.random() < 0.25 else f"{BOOKED} {turn}" for turn in range(turns)
            ]
            rated = ["3", *("2" if SORRY in reply else "4" for reply in replies)]
            for turn in range(turns):
                lines.append(f"USER\t{users[turn]}\tHotel-Inform\t{rated[turn]},{rated[turn]}")
                lines.append(f"SYSTEM\t{replies[turn]}\t\t")
            lines += [f"USER\tOVERALL\t\t{rated[-1]},{rated[-1]}", ""]
            pairs = [
                *(f"{user}|||{reply}" for user, reply in zip(users, replies, strict=True)),
                "OVERALL|||",
            ]
            if number < test_dialogues + 6:
                part = "test" if number < test_dialogues else "valid"
                parts[part].append(f"{pairs!r}\t{[0] * (turns + 1)!r}\t1")
        (folder / f"{name}.txt").write_text("\n" + "\n".join(lines) + "\n")
        for part, samples in parts.items() if tested else ():
            stem = part if name == "one" else f"{part}-two"
            (folder / f"{stem}.txt").write_text("\n".join(samples) + "\n")
    for name, file in (("label", "few-shot"), ("write", "counterfactual")):
        (folder / f"{name}.txt").write_text((FOLDER / f"{file}-prompt.txt").read_text())


@pytest.fixture
def endpoint() -> Iterator[Server]:
    """A model that labels by the last response, and writes the other one."""

    def answer(handler: Any) -> None:
        asked = vars(handler)["asked"]["messages"][0]["content"]
        last = asked.rpartition("SYSTEM:")[2]
        lost = "Sorry" in last
        if "Label of Example 3 is:" in asked:
            tokens = ['"', "Dis" if lost else "S", "satisfied" if lost else "atisfied"]
            logprobs = {"content": [{"token": token, "logprob": -0.25} for token in tokens]}
            says("".join(tokens), logprobs=logprobs)(handler)
        else:
            says(f"SYSTEM: {BOOKED if lost else SORRY}")(handler)

    server = Server([answer])
    yield server
    server.close()


class Stub:
    """Stands for a trained estimator where torch is not installed: right on most samples."""

    def __init__(self, *_: Any, times: int, **__: Any) -> None:
        self.times = times

    def probability(self, samples: pd.DataFrame) -> Any:
        numbers = np.random.default_rng(self.times).random(len(samples))
        lost = samples["systems"].str[-1].str.contains("Sorry")
        return np.where(lost, 0.3, 0.0) + 0.6 * numbers


@pytest.fixture
def command(
    tmp_path: Path, endpoint: Server, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    monkeypatch.setattr(record, "fit_hawkes", Stub)
    monkeypatch.setattr(record, "PACKAGES", dict.fromkeys(record.PACKAGES, ()))
    dialogues_in(tmp_path)

    def run(*options: str, **changes: Any) -> Result:
        config = config_in(tmp_path, endpoint.url, **changes)
        arguments = [
            "study",
            "satisfaction",
            "--config",
            str(config),
            "--work",
            str(tmp_path / "work"),
            *options,
        ]
        return called(*arguments, catch_exceptions=False)

    return run


def config_in(folder: Path, url: str = "http://127.0.0.1:9/v1", **changes: Any) -> Path:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(SMALL | changes).replace("URL", url))
    return path


def fill(path: Path, *, but: int = 0) -> None:
    """Answer as the endpoint would, but for so many items."""
    table = pd.read_csv(path)
    lost = table["response"].str.contains("Sorry")
    lost.iloc[:but] = ~lost.iloc[:but]
    table.assign(satisfied=np.where(lost, "no", "yes"), coherent="yes").to_csv(path, index=False)


def annotated(folder: Path, command: Callable[..., Result], **changes: Any) -> None:
    """The whole round trip: asked for, answered twice, settled."""
    for names in ({"annotator-1": 0, "annotator-2": 3}, {"adjudicator": 0}):
        result = command(**changes)
        assert result.exit_code == 2, result.output
        # files to fill in were written, and so were the responses before them
        assert "nothing was written" not in result.output
        for name, but in names.items():
            for collection in ("MultiWOZ", "SGD"):
                assert f"{collection}-{name}.csv" in result.output
                fill(folder / "people" / f"{collection}-{name}.csv", but=but)
    assert (result := command(**changes)).exit_code == 0, result.output


def test_responses_are_written_labelled_by_people_and_estimated(
    tmp_path: Path, command: Callable[..., Result]
) -> None:
    told = command("--dry-run")
    assert told.exit_code == 0, told.output
    assert "written, MultiWOZ: 0 of 18 responses" in told.output
    assert "few-shot, SGD, Few-shot: 0 of an unknown number of samples" in told.output
    assert not (tmp_path / "recorded").exists()
    annotated(tmp_path, command)
    study = Study.read(str(tmp_path / "config.yaml"))
    one, two = (
        pd.read_csv(tmp_path / "people" / f"MultiWOZ-annotator-{number}.csv") for number in (1, 2)
    )
    assert set(one.columns) == {"item", "context", "response", "question", "satisfied", "coherent"}
    asked = study.annotations("MultiWOZ")
    both = one.merge(two, on="item").merge(asked.items[asked.items["written"]], on="item")
    wanted = cohen_kappa_score(both["satisfied_x"], both["satisfied_y"])
    assert asked.agreement()["Satisfaction Label (κ)"] == pytest.approx(wanted)
    held = study.test_sets["MultiWOZ"]
    last = held.turned["systems"].str[-1]
    assert (last.str.contains("Sorry") == held.turned["dissatisfied"]).all()
    assert len(held.turned) == len(held.part("test")) == 18
    said = study.predictions()
    few = said[said["system"] == "few-shot"].merge(
        held.worlds(), on=["collection", "world", "sample"]
    )
    assert ((few["dissatisfaction"] >= 0.5) == few["dissatisfied"]).all()
    assert (few["dissatisfaction"] - 0.5).abs().to_numpy() == pytest.approx(
        np.exp(-0.25) / 2, abs=1e-5
    )
    again = command()
    assert again.exit_code == 0
    assert "few-shot, MultiWOZ, Few-shot: 36 of 36 samples" in again.output


def test_a_key_is_sent_to_the_endpoint_that_the_config_names_for_it_and_to_no_other(
    command: Callable[..., Result], endpoint: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdefghij")
    for variable, sent in (("", None), ("OPENAI_API_KEY", "Bearer sk-0123456789abcdefghij")):
        endpoint.authorisations.clear()
        writer = SMALL["writer"] | {"key_variable": variable, "size": 2}
        record = f"recorded-{variable}"
        assert command(writer=writer, record=record).exit_code == 2  # people are asked
        assert set(endpoint.authorisations) == {sent}
    # one that is named and not there is wanted first
    monkeypatch.delenv("OPENAI_API_KEY")
    result = command("--dry-run", writer=writer, record="another")
    assert "wanted first: a key in the environment variable OPENAI_API_KEY" in result.output
    assert THESIS["writer"]["key_variable"] == "OPENAI_API_KEY"
    assert not any("key_variable" in estimator for estimator in THESIS["estimators"].values())


def as_large_as_the_thesis(folder: Path) -> dict[str, Any]:
    """Stand-ins with as many test samples as the thesis's collections, few of them turned."""
    dialogues_in(folder, one=851, two=924, exchanges=16)
    parts = {"valid": "valid-two.txt", "test": "test-two.txt"}
    collections = SMALL["collections"]
    return {
        "collections": collections | {"SGD": collections["SGD"] | parts},
        "writer": SMALL["writer"] | {"size": 18},
    }


def test_a_collection_of_another_size_is_a_replica_whatever_the_config_says(tmp_path: Path) -> None:
    dialogues_in(tmp_path)
    study = Study.read(str(config_in(tmp_path, stands_for="thesis")))
    assert (study.basis, study.data_basis) == ("replica", "replica")
    assert study.other_data == "18 test samples of MultiWOZ, where the thesis has 851"
    assert study.other_data in words.of_sources(study)
    large = as_large_as_the_thesis(tmp_path)
    study = Study.read(str(config_in(tmp_path, stands_for="thesis", **large)))
    assert (study.basis, study.data_basis, study.other_data) == ("recomputed", "recomputed", "")


def test_the_notebook_compares_with_the_printed_cells_when_the_config_is_the_thesis(
    tmp_path: Path, command: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = SMALL["estimators"]
    estimators = {
        name: own[kind] | {"printed": printed}
        for name, kind, printed in (
            ("bert", "hawkes", "BERT"),
            ("zephyr", "few-shot", "Zephyr"),
            ("mistral", "few-shot", "MistralIF"),
        )
    }
    changes: dict[str, Any] = {
        "stands_for": "thesis",
        "estimators": estimators,
        "tolerance": 1.0,
    }
    changes |= as_large_as_the_thesis(tmp_path)
    annotated(tmp_path, command, **changes)
    for name in (VARIANT_VARIABLE, REPORT_FOLDER_VARIABLE, "PYTHONHASHSEED", "SOURCE_DATE_EPOCH"):
        monkeypatch.setenv(name, "")  # which the run sets, and the end of this test takes back
    folder = tmp_path / "report"
    folder.mkdir()
    source = project.root() / "notebooks" / "thesis_ch3_satisfaction.ipynb"
    given = {"study": str(tmp_path / "config.yaml"), "resamples": 50, "step": 0.25}
    where, why = build.execute(str(source), given, str(folder))
    assert (where, why) == ("", "")
    manifest = json.loads((folder / "manifest.json").read_text())
    found = {artefact["artefact"]: artefact for artefact in manifest["artefacts"]}
    for number, cells in (
        ("1", 14),
        ("2", 18),
        ("3", 4),
        ("4", 6),
        ("5", 12),
        ("6", 192),
        ("7", 8),
    ):
        assert found[f"thesis/table-3.{number}"]["basis"] == "recomputed"
        assert found[f"thesis/table-3.{number}"]["cells"] == cells
        assert found[f"thesis/table-3.{number}"]["differences"]
    # nothing here is ASAP, and its rows are said to be empty
    assert found["thesis/table-3.6"]["note"] == "no estimator stands for ASAP"


@pytest.mark.parametrize(("level", "least"), [("turn", 3), ("dialogue", 1)])
def test_other_collections_and_responses_of_a_file(
    tmp_path: Path, command: Callable[..., Result], level: str, least: int
) -> None:
    numbers = count()
    rows = []
    further = SMALL["collections"] | {"more": SMALL["collections"]["SGD"] | {"level": level}}
    study = Study.read(str(config_in(tmp_path)))
    for name in study.collections:
        samples = study.texts(name).part("test")["sample"]
        rows += [(name, sample, f"Other {next(numbers)}") for sample in samples]
    table = pd.DataFrame(rows, columns=["collection", "sample", "response"])
    if level == "turn":
        more = table[table["collection"] == "SGD"].assign(collection="more")
        table = pd.concat([table, more])
    table.to_csv(tmp_path / "own.csv", index=False)
    changes = {
        "counterfactuals": "file",
        "responses": "own.csv",
        "collections": further,
        "writer": None,
    }
    assert (result := command(**changes)).exit_code == 0, result.output
    study = Study.read(str(tmp_path / "config.yaml"))
    assert (
        study.test_sets["SGD"].turned["systems"].str[-1].tolist()
        == table.query("collection == 'SGD'")["response"].tolist()
    )
    assert study.test_sets["more"].samples["users"].map(len).min() == least * (
        6 if level == "dialogue" else 1
    )
    assert study.predictions()["collection"].nunique() == 3
    table.assign(sample="9:9").to_csv(tmp_path / "own.csv", index=False)
    with pytest.raises(ValueError, match="are of no test sample, or of one twice"):
        _ = Study.read(str(tmp_path / "config.yaml")).test_sets


def thesis_in(folder: Path, url: str) -> Path:
    """The thesis's config of which paths and sizes alone differ, for files in a folder."""
    config: dict[str, Any] = json.loads(json.dumps(THESIS))
    config["collections"] = SMALL["collections"]
    config["writer"] |= {"endpoint": url, "size": 2, "annotations": "out/people"}
    estimators = config["estimators"]
    estimators["bert"] |= {"model": "bert", "up_sampling": [10, 20], "under_sampling": False}
    estimators["bert"]["training"] |= {"epochs": 2, "utterance": 8, "length": 32}
    estimators["hawkes"] |= {"model": "bert", "up_sampling": [1], "under_sampling": False}
    estimators["hawkes"]["training"] |= {"steps": 2, "length": 32}
    estimators["zephyr"] |= {"model": "chat", "dialogues": 2}
    estimators["mistral"] |= {"endpoint": url, "dialogues": 2}
    for model in (config["writer"], *estimators.values()):
        model.pop("key_variable", "")  # of a server on this machine
        model["device"] = "cpu"
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config | {"record": "out/recorded"}))
    return path


def answered_by_people(folder: Path) -> bool:
    """Fill in every file that people are asked in and have not; whether there was one."""
    waiting = [path for path in sorted(folder.glob("*.csv")) if ",," in path.read_text()]
    for path in waiting:
        fill(path, but=2 if "annotator-2" in path.name else 0)
    return bool(waiting)


def recorded_in(folder: Path) -> dict[str, Any]:
    """The files of a record, without the time that each took."""
    record: dict[str, Any] = files(folder)
    for name in list(record):
        if name.endswith(".json"):
            settings = json.loads(record[name])
            settings.pop("measured", None)
            record[name] = settings
    return record


def test_a_study_killed_at_each_kind_of_change_ends_as_one_that_is_not(
    tmp_path: Path, endpoint: Server
) -> None:
    checkpoints_in(tmp_path / "models")
    dialogues_in(tmp_path, one=9, further=14)
    command = ["study", "satisfaction", "--config", str(thesis_in(tmp_path, endpoint.url))]
    folder = tmp_path / "out"
    command += ["--models", str(tmp_path / "models"), "--work", str(folder / "work")]
    people = folder / "people"
    study = KilledStudy(folder, lambda: answered_by_people(people), alike=("MultiWOZ", "SGD"))
    # Two files of what is written, two of people, two of each estimator, three of trainings.
    end_as_uninterrupted(study, command, recorded_in, at_least=2 + 2 + 4 * 2 + 3)


def test_labels_that_are_none_are_refused_by_line(tmp_path: Path) -> None:
    dialogues_in(tmp_path)
    collection = Study.read(str(config_in(tmp_path))).texts("MultiWOZ")
    responses = collection.part("test")[["sample"]].assign(response="=cmd()")
    items = items_of(collection, responses)
    asked = Annotations(tmp_path / "people", "MultiWOZ", items)
    with pytest.raises(InputError, match="36 items without an answer"):
        asked.go_on()
    path = asked.path("annotator-1")
    assert ",=cmd()" not in path.read_text()
    table = pd.read_csv(path).astype(object)
    table.loc[0, "satisfied"] = "maybe"
    table.loc[1, "item"] = "other"
    table.to_csv(path, index=False)
    with pytest.raises(InputError) as caught:
        asked.labels("annotator-1")
    assert "line 2, column satisfied: found 'maybe'" in str(caught.value)
    assert "column item: found 'other'" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"collections": {"SGD": {"upstream": "SGD"}}}, "found no MultiWOZ"),
        ({"counterfactuals": "file"}, "name their responses"),
        ({"writer": None}, "name their writer"),
        ({"estimators": {}}, "up-sampled by 10 and by 20"),
        (
            {"estimators": {"x": {"kind": "encoder", "about": "y", "training": TRAINING}}},
            "encoder has a model",
        ),
        (
            {"estimators": {"x": {"kind": "few-shot", "about": "y", "model": "z"}}},
            "a few-shot estimator has a prompt",
        ),
        (
            {"estimators": {"x": {"kind": "hawkes", "about": "y", "training": {}}}},
            "some epochs, or else some steps",
        ),
        ({"collections": {"SGD": {}}}, "one of item uss (upstream), or a file"),
    ],
)
def test_a_bad_config_is_refused_by_its_place(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_config(config_in(tmp_path, **changes), Study)
    assert said in str(caught.value)


def test_weights_that_lack_or_are_empty_are_named(
    tmp_path: Path, command: Callable[..., Result]
) -> None:
    estimators = SMALL["estimators"] | {
        "local": SMALL["estimators"]["few-shot"] | {"endpoint": "", "model": "x.gguf"}
    }
    (tmp_path / "models").mkdir()
    for said in ("x.gguf in --models", "x.gguf: none in the form GGUF"):
        result = command("--models", str(tmp_path / "models"), estimators=estimators)
        assert result.exit_code == 2
        assert said in result.output
        (tmp_path / "models" / "x.gguf").touch()


def test_more_than_the_data_hold_is_refused_before_anything_is_recorded(
    tmp_path: Path, command: Callable[..., Result]
) -> None:
    few_shot = SMALL["estimators"]["few-shot"] | {"dialogues": 1000}
    result = command(
        estimators=SMALL["estimators"] | {"few-shot": few_shot},
        writer=SMALL["writer"] | {"size": 500},
    )
    assert result.exit_code == 2
    for said in (
        "wanted 500 test samples of MultiWOZ; there are",
        "wanted 1,000 test dialogues of SGD; there are",
    ):
        assert said in " ".join(result.output.split())
    assert not (tmp_path / "recorded").exists()


def test_committed_configs_are_read_and_the_replica_is_recorded() -> None:
    thesis, replica = Study.read("thesis"), Study.read("replica")
    assert (thesis.basis, replica.basis) == ("recomputed", "replica")
    rows = pd.read_csv(project.root() / "data" / "published" / "thesis" / "table-3.6.csv")["model"]
    assert {one.printed for one in thesis.estimators.values()} - {""} == set(rows) - {"ASAP"}
    steps = record.plan(replica, None, Path("none"))
    assert [step.name for step in steps if not step.finished] == []


def checkpoints_in(folder: Path) -> Any:
    """A BERT and a language model drawn at random; returns their tokeniser."""
    torch = pytest.importorskip(
        "torch", reason="torch is not installed: pip install 'equipoise[models]'"
    )
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers

    torch.manual_seed(1)
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        *"abcdefghij",
        "Sorry",
        "Yes",
        "USER",
        "SYSTEM",
        "S",
        "D",
    ]
    plain = Tokenizer(
        models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]")
    )
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
    }
    tokens = transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, eos_token="[SEP]", **special
    )
    tokens.chat_template = "{% for message in messages %}{{ message.content }}{% endfor %}"
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    vocabulary = {"vocab_size": len(words), "max_position_embeddings": 1024}
    made = {
        "bert": transformers.BertModel(transformers.BertConfig(**sizes, **vocabulary)),
        "chat": transformers.Qwen2ForCausalLM(
            transformers.Qwen2Config(**sizes, **vocabulary, num_key_value_heads=1)
        ),
    }
    for name, network in made.items():
        network.save_pretrained(folder / name)
        tokens.save_pretrained(folder / name)
    return tokens


def test_checkpoints_made_on_the_spot_are_trained_and_asked(
    tmp_path: Path, command: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    tokens = checkpoints_in(tmp_path / "models")
    torch = pytest.importorskip("torch")
    own = SMALL["estimators"]
    trained = {"about": "x", "model": "bert", "training": {"epochs": 1, "length": 32}}
    estimators = {
        "encoder": trained | {"kind": "encoder", "under_sampling": True},
        "states": trained | {"kind": "hawkes", "up_sampling": [1, 10, 20]},
        "ratings": trained
        | {
            "kind": "encoder",
            "training": {"epochs": 1, "length": 32, "program": "uss", "utterance": 8},
        },
        "few-shot": own["few-shot"] | {"endpoint": "", "model": "chat", "dialogues": 2},
    }
    changes = {"counterfactuals": "swapped", "writer": None, "estimators": estimators}
    result = command("--models", str(tmp_path / "models"), **changes)
    assert result.exit_code == 0, result.output
    said = Study.read(str(tmp_path / "config.yaml")).predictions()
    assert set(said["setup"]) == {
        "w/o up-sampling",
        "up-sampling x10",
        "up-sampling x20",
        "under-sampling",
        "Few-shot",
    }
    asked = [f"{' '.join('abc' * 9)} {end}" for end in ("a b", "a b c d", "j")]
    local = Reader.load(tmp_path / "models" / "chat")
    together = local.first_tokens(asked)
    for text, found in zip(asked, together, strict=True):
        ids = local.tensor([local.prompt([{"role": "user", "content": text}])])
        alone = torch.log_softmax(local.network(ids).logits[0, -1].detach().float(), dim=-1)
        for token, value in found.items():
            assert value == pytest.approx(
                float(alone[tokens.convert_tokens_to_ids(token)]), abs=0.05
            )
    assert isinstance(local.written(asked[0], 3), str)
    weights = tmp_path / "models" / "chat" / "model.safetensors"
    torch.save(local.network.state_dict(), weights.with_name("pytorch_model.bin"))
    weights.unlink()
    with pytest.raises(OSError, match="safetensors"):
        Reader.load(weights.parent)
