"""The script that records chapter 3: small data in the real formats, models made on the spot.

One run follows the thesis's config, with only paths and sizes changed. It is killed once, and the
endpoint limits its rate.
"""

import math
import os
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

for package in ("torch", "transformers", "openai", "accelerate"):
    pytest.importorskip(
        package, reason=f"recording needs {package}: pip install 'equipoise[models]'"
    )

SCRIPT = project.root() / "data" / "outputs" / "satisfaction" / "record.py"
MAKE = project.root() / "data" / "facts" / "satisfaction" / "make.py"
CONFIGS = project.root() / "data" / "studies" / "satisfaction"
BOOKED, SORRY = "Yes, that is booked for you.", "Sorry, there is nothing."


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
