"""The script that records chapter 3: small data in the real formats, models made on the spot.

One run follows the thesis's config, with only paths and sizes changed. It is killed once, and the
endpoint limits its rate.
"""

import csv
import json
import math
import os
import runpy
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from chat_server import Server, fails, request_of, says
from equipoise_compendium import project
from equipoise_compendium.provenance import VARIANT_VARIABLE
from equipoise_studies.satisfaction import data
from notebook_evidence import evidence_of
from upstream import skip_without

for package in ("torch", "transformers", "openai", "accelerate"):
    pytest.importorskip(
        package, reason=f"recording needs {package}: pip install 'equipoise[models]'"
    )

SCRIPT = project.root() / "data" / "outputs" / "satisfaction" / "record.py"
MAKE = project.root() / "data" / "facts" / "satisfaction" / "make.py"
CONFIGS = project.root() / "data" / "studies" / "satisfaction"
BOOKED, SORRY = "Yes, that is booked for you.", "Sorry, there is nothing."
RECORD: dict[str, Any] = runpy.run_path(str(SCRIPT))


def run(script: Path, *options: object, **how: Any) -> subprocess.Popen[bytes]:
    """Start a script."""
    environment = os.environ | {
        "PYTHONPATH": str(project.root() / "lib"),
        "HF_HUB_OFFLINE": "1",
        "TQDM_DISABLE": "1",
    }
    command = [sys.executable, str(script), *map(str, options)]
    return subprocess.Popen(command, env=environment, **how)


def finish(script: Path, *options: object) -> None:
    assert run(script, *options).wait() == 0


@pytest.fixture
def endpoint() -> Iterator[Server]:
    """A model that labels by the last response, and writes the other one; it limits its rate."""
    n_asked = 0

    def answer(handler: Any) -> None:
        nonlocal n_asked
        n_asked += 1
        if n_asked % 5 == 0:
            fails(429, b"too many requests", Retry_After="0.01")(handler)
            return
        asked = request_of(handler)["messages"][0]["content"]
        is_sorry = "Sorry" in asked.rpartition("SYSTEM:")[2]
        if "Label of Example 3 is:" in asked:
            tokens = ['"', "Dis" if is_sorry else "S", "satisfied" if is_sorry else "atisfied"]
            logprobs = {"content": [{"token": token, "logprob": -0.25} for token in tokens]}
            says("".join(tokens), logprobs=logprobs)(handler)
        else:
            time.sleep(0.05)
            says(f"SYSTEM: {BOOKED if is_sorry else SORRY}")(handler)

    server = Server([answer])
    yield server
    server.close()


def dialogues_in(folder: Path) -> None:
    """Rated dialogues of six exchanges, in the formats of uss and asap."""
    for name, seed in (("one", 1), ("two", 2)):
        draw = np.random.default_rng(seed)
        lines, parts = list[str](), {"valid": list[str](), "test": list[str]()}
        for number in range(20):
            users = [f"Please book number {number} {turn} {name}" for turn in range(6)]
            replies = [SORRY if draw.random() < 0.3 else f"{BOOKED} {turn}" for turn in range(6)]
            rated = ["3", *("2" if SORRY in reply else "4" for reply in replies)]
            for turn in range(6):
                lines.append(f"USER\t{users[turn]}\tHotel-Inform\t{rated[turn]},{rated[turn]}")
                lines.append(f"SYSTEM\t{replies[turn]}\t\t")
            lines += [f"USER\tOVERALL\t\t{rated[-1]},{rated[-1]}", ""]
            pairs = [f"{user}|||{reply}" for user, reply in zip(users, replies, strict=True)]
            sample = f"{[*pairs, 'OVERALL|||']!r}\t{[0] * 7!r}\t1"
            if number < 8:
                parts["test" if number < 5 else "valid"].append(sample)
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
        for part, samples in parts.items():
            (folder / f"{part}-{name}.txt").write_text("\n".join(samples) + "\n")
    for name in ("few-shot", "counterfactual"):
        shutil.copy(CONFIGS / f"{name}-prompt.txt", folder)


def models_in(folder: Path) -> None:
    """A BERT and a language model drawn at random."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    torch.manual_seed(1)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "Sorry", "Yes", "USER", "SYSTEM", "Satisfied"]
    words += list("abcdefghij")  # a Qwen2 tokenizer reads letters, whatever the file says
    vocabulary = {word: place for place, word in enumerate(words)}
    plain = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
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
    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    shape |= {"intermediate_size": 16, "vocab_size": len(words), "max_position_embeddings": 1024}
    bert = transformers.BertModel(transformers.BertConfig(**shape))
    chat = transformers.Qwen2ForCausalLM(
        transformers.Qwen2Config(**shape, num_key_value_heads=2, eos_token_id=3, pad_token_id=0)
    )
    for name, network in {"bert": bert, "chat": chat}.items():
        network.save_pretrained(folder / name)
        tokens.save_pretrained(folder / name)


def thesis_in(folder: Path, url: str) -> Path:
    """A copy of the thesis's config with only paths and sizes changed."""
    config = yaml.safe_load((CONFIGS / "thesis.yaml").read_text())
    for name, file in {"MultiWOZ": "one", "SGD": "two"}.items():
        config["collections"][name] |= {
            "dialogues": f"{file}.txt",
            "valid": f"valid-{file}.txt",
            "test": f"test-{file}.txt",
        }
    served = {"endpoint": url, "model": "tiny", "key_variable": "", "about": "a served model"}
    config["writer"] |= served
    bert = config["estimators"]["bert"]
    bert |= {"model": "bert", "up_sampling": [1, 10]}
    bert["training"] |= {"epochs": 1, "length": 32, "utterance": 8}
    config["estimators"]["hawkes"] |= {"up_sampling": [10, 20], "under_sampling": False}
    config["estimators"]["hawkes"]["training"] |= {"steps": 2, "width": 4}
    config["estimators"]["zephyr"] |= {"model": "chat", "dialogues": 1}
    config["estimators"]["mistral"] |= served | {"dialogues": 2}
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def fill(folder: Path) -> None:
    """Answer as people would; the second annotator errs on the first two items."""
    for path in folder.glob("*.csv"):
        table = pd.read_csv(path, keep_default_na=False)
        is_sorry = table["response"].str.contains("Sorry")
        if "annotator-2" in path.name:
            is_sorry.iloc[:2] = ~is_sorry.iloc[:2]
        table["satisfied"] = np.where(is_sorry, "no", "yes")
        table.assign(coherent="yes").to_csv(path, index=False)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_study_in_the_design_of_the_thesis_is_recorded_and_reported(
    tmp_path: Path, endpoint: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialogues_in(tmp_path)
    models_in(tmp_path / "models")
    config = thesis_in(tmp_path, endpoint.url)
    options = ("--config", config, "--models", tmp_path / "models")
    outputs = tmp_path / "outputs"
    written = outputs / "written.csv"

    process = run(SCRIPT, *options)
    while not written.is_file() or written.read_text().count("\n") < 4:
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    with written.open("a") as file:
        file.write("MultiWOZ,1:")  # what a kill may leave
    finish(SCRIPT, *options)  # continues, and writes what annotators are asked
    fill(outputs / "annotations")
    finish(SCRIPT, *options)  # asks the third
    fill(outputs / "annotations")
    finish(SCRIPT, *options)
    rows = pd.read_csv(written)
    assert not rows.duplicated(["collection", "sample"]).any()
    assert rows["collection"].value_counts().to_dict() == {"MultiWOZ": 15, "SGD": 15}

    before = files(outputs)
    finish(SCRIPT, *options)
    assert files(outputs) == before  # nothing is recorded twice
    finish(MAKE, "--config", config)

    study = data.read_study(str(config))
    samples = data.samples_of(data.rated_turns(study))
    other = data.other_responses(study, samples)
    assert len(other) == 30
    table = data.predictions(study, other)
    sizes = table.groupby(["system", "setup", "world"]).size()
    assert sizes["bert"].eq(30).all()
    assert set(sizes["bert"].reset_index()["setup"]) == set(study.estimators["bert"].setups)
    assert set(table["system"]) == set(study.estimators)
    served = table[table["system"] == "mistral"].merge(
        pd.concat([data.estimated(samples, "test").assign(world="Main"), other.assign(world="CF")]),
        on=["collection", "world", "sample"],
    )
    assert ((served["dissatisfaction"] >= 0.5) == served["dissatisfied"]).all()
    expected = np.full(len(served), math.exp(-0.25) / 2)
    assert (served["dissatisfaction"] - 0.5).abs().to_numpy() == pytest.approx(expected, abs=1e-5)

    monkeypatch.setenv(VARIANT_VARIABLE, "study=config.yaml")
    parameters = f"study = {str(config)!r}\nresamples = 50\nstep = 0.25"
    evidence, _ = evidence_of("thesis_ch3_satisfaction", tmp_path, parameters)
    parts = evidence["thesis/3.4-drop"]["swapped responses"]
    assert all(part.estimate is not None for part in parts.values())


@pytest.mark.upstream
def test_a_trial_has_the_ids_and_prompts_of_the_committed_record(
    tmp_path: Path, endpoint: Server
) -> None:
    skip_without("uss", "asap", "crsarena")
    models_in(tmp_path / "models")
    for name in ("few-shot", "counterfactual"):
        shutil.copy(CONFIGS / f"{name}-prompt.txt", tmp_path)
    content = yaml.safe_load((CONFIGS / "replica.yaml").read_text())
    content["estimators"]["few-shot"]["endpoint"] = content["writer"]["endpoint"] = endpoint.url
    content["estimators"]["encoder"] |= {"model": "bert", "up_sampling": [1]}
    content["estimators"]["hawkes"] |= {"up_sampling": [1]}
    content["users"]["encoder"] |= {"model": "bert"}
    content["users"]["few-shot"]["endpoint"] = endpoint.url
    config = tmp_path / "trial.yaml"
    config.write_text(yaml.safe_dump(content))
    out = tmp_path / "out"
    finish(
        SCRIPT, "--config", config, "--limit", 20, "--models", tmp_path / "models", "--output", out
    )
    committed = SCRIPT.parent
    for name, keys in (
        ("written", 2),
        ("encoder", 5),
        ("hawkes", 5),
        ("few-shot", 5),
        ("users", 3),
    ):
        ids = []
        for folder in (out, committed):
            with (folder / f"{name}.csv").open(encoding="utf-8") as file:
                ids.append([tuple(row[:keys]) for row in csv.reader(file)][1:])
        ours, theirs = ids
        assert len(ours) == len(set(ours)) > 20
        assert set(ours) <= set(theirs), name
    prompts = []
    for folder in (out, committed):
        settings = json.loads((folder / "settings" / "few-shot.json").read_text())
        prompts.append((settings["estimator"]["prompt"], settings["seed"], settings["turned"]))
    assert prompts[0] == prompts[1]
    asked = [request["messages"][0]["content"] for request in endpoint.requests]
    template = prompts[1][0].partition("{Example Dialogue 1}")[0]
    assert sum(text.startswith(template) for text in asked) >= 80


# --- parts ----------------------------------------------------------------------------------------


def test_a_prompt_is_filled_once() -> None:
    prompt = "{Example Dialogue 1} {Example Dialogue 2} {Input Dialogue} {else}"
    filled = RECORD["filled"](prompt, "{Example Dialogue 1}", ["one", "two"])
    assert filled == "one two {Example Dialogue 1} {else}"


def test_the_probability_of_an_answer_is_on_the_side_of_its_label() -> None:
    label_probability = RECORD["label_probability"]
    answer = [("The ", -9.0), ("label is ", -9.0), ("Dis", math.log(0.4)), ("satisfied", -0.1)]
    assert label_probability(answer) == pytest.approx(0.7)
    answer = [("Satis", math.log(0.4)), ("fied, not Dissatisfied", -0.1)]
    assert label_probability(answer) == pytest.approx(0.3)
    assert label_probability([("Dissatisfied", 0.0)]) == 1
    assert math.isnan(label_probability([("neither", -0.1)]))


@pytest.mark.parametrize("seed", range(3))
def test_the_hawkes_process_is_the_direct_sum_of_its_definition(seed: int) -> None:
    import torch

    rng = np.random.default_rng(seed)
    vectors = np.concatenate([rng.normal(size=(4, 5, 3)), np.ones((4, 5, 1))], axis=2)
    mask = np.arange(5) >= rng.integers(0, 5, size=(4, 1))
    process = RECORD["Hawkes"](3)
    base, jump = rng.normal(size=(2, 4, 2))
    slowness = rng.normal(size=2)
    with torch.no_grad():
        for name, values in {"base": base, "jump": jump, "slowness": slowness}.items():
            getattr(process, name).copy_(torch.tensor(values))
        shares = process(
            torch.tensor(vectors, dtype=torch.float32), torch.tensor(mask).float().unsqueeze(2)
        ).numpy()
    decay = np.log1p(np.exp(slowness))
    for sample in range(4):
        intensity = vectors[sample, -1] @ base
        for turn in np.flatnonzero(mask[sample, :-1]):
            jumps = np.log1p(np.exp(vectors[sample, turn] @ jump))
            intensity = intensity + jumps * np.exp(-decay * (4 - turn))
        intensity = np.log1p(np.exp(intensity))
        assert shares[sample] == pytest.approx(intensity / intensity.sum(), rel=1e-4)


def test_a_dialogue_is_cut_by_utterance_and_from_the_end() -> None:
    class Tokens:
        cls_token_id, sep_token_id = 1, 2

        def encode(self, text: str, add_special_tokens: bool) -> list[int]:
            assert not add_special_tokens
            return [int(word) for word in text.split()]

    row = pd.Series({"users": ("10 11 12", "13"), "systems": ("14", "")})
    for training, exchanges, tokens in (
        ({"length": 99, "utterance": 3}, 0, [1, 10, 11, 12, 14, 2, 13, 2]),
        ({"length": 5}, 0, [1, 14, 2, 13, 2]),
        ({"length": 99}, 1, [1, 13, 2]),
    ):
        estimator = data.Estimator.model_validate(
            {"kind": "encoder", "exchanges": exchanges, "training": training}
        )
        assert RECORD["dialogue_tokens"](Tokens(), row, estimator) == tokens


def test_exchanged_shares_keep_the_rarer_label_and_every_dialogue_is_labelled_once() -> None:
    users = data.users()
    exchanged = RECORD["with_shares_exchanged"](users)
    assert (~exchanged["dissatisfied"]).sum() == (~users["dissatisfied"]).sum()
    share = 1 - users["dissatisfied"].mean()
    assert exchanged["dissatisfied"].mean() == pytest.approx(share, abs=0.01)

    cached = data.user_predictions()
    assert (cached.groupby(["system", "setup"]).size() == len(users)).all()
    assert not cached.duplicated(["system", "setup", "dialogue"]).any()
