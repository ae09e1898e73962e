"""Record predictions of user satisfaction, with original and other last responses.

    python data/outputs/satisfaction/record.py [--config FILE] [--limit N] [--models FOLDER]
                                               [--output FOLDER]

A language model writes last responses, annotators label them in CSV files, and estimators label
the dialogues. The script skips recorded samples, so the same command continues a stopped run.
`--limit` takes the first N samples of each kind, for a trial; `--models` is the folder of
checkpoints; `--output` is by default the folder `outputs` of the config. The script needs the
packages of the extra `models`, and the derived data of make.py.
"""

import argparse
import json
import math
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import openai
import pandas as pd
import torch
import transformers
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import recall_score
from sklearn.pipeline import make_pipeline
from tqdm import tqdm

from equipoise_compendium.writing import harmless
from equipoise_studies.satisfaction import data
from equipoise_studies.satisfaction.data import Estimator, Model, Study
from equipoise_studies.satisfaction.texts import (
    annotated_items,
    dialogue_text,
    read_collection,
    read_users,
)

SEED = 20240501
KEYS = ["collection", "world", "sample", "system", "setup"]
LABEL_TOKENS = 16  # of an answer that is a label, at most
INSTRUCTION = (
    "satisfied: after the last SYSTEM utterance, is the USER satisfied? yes: the system "
    "understands the request, and partially or fully satisfies it or provides information on how "
    "it can be fulfilled; no: it fails to understand or fulfil the request in any way. coherent: "
    "does that utterance fit the turns before it? yes or no."
)


# --- files ----------------------------------------------------------------------------------------


def recorded(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Read the rows of a file; remove an incomplete row of a stopped run."""
    if not path.is_file():
        return pd.DataFrame(columns=columns, dtype=str)
    text = path.read_text(encoding="utf-8")
    if not text.endswith("\n"):
        path.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def append(path: Path, rows: pd.DataFrame) -> None:
    """Append rows to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.is_file() or path.stat().st_size == 0
    rows.to_csv(path, mode="a", header=is_new, index=False, float_format="%.6g")


# --- language models ------------------------------------------------------------------------------


class LanguageModel:
    """A language model on this machine or at an OpenAI endpoint, without sampling."""

    def __init__(self, model: Model, folder: Path) -> None:
        self.name = model.model
        self.client = None
        if model.endpoint:
            key = os.environ[model.key_variable] if model.key_variable else "none"
            # If the endpoint limits the rate, the client waits, twice as long each time.
            self.client = openai.OpenAI(
                base_url=model.endpoint, api_key=key, max_retries=20, timeout=120
            )
            return
        path = folder / model.model
        source = {"local_files_only": True}
        if path.is_file():  # GGUF weights, unpacked
            source["gguf_file"] = path.name
            path = path.parent
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(path, **source)
        self.network = transformers.AutoModelForCausalLM.from_pretrained(
            path, dtype=torch.bfloat16, **source
        )
        self.network.to("cuda" if torch.cuda.is_available() else "cpu").eval()

    def answer(self, prompt: str, most: int) -> list[tuple[str, float]]:
        """Return the tokens of the most probable answer, with their log-probabilities."""
        messages = [{"role": "user", "content": prompt}]
        if self.client is not None:
            completion = self.client.chat.completions.create(
                model=self.name,
                messages=messages,
                temperature=0.0,
                top_p=1.0,
                max_tokens=most,
                logprobs=True,
            )
            choice = completion.choices[0]
            if choice.logprobs is None or not choice.logprobs.content:
                return [(choice.message.content or "", 0.0)]  # the answer counts as certain
            return [(token.token, token.logprob) for token in choice.logprobs.content]
        inputs = self.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
        ).to(self.network.device)
        with torch.inference_mode():
            output = self.network.generate(
                **inputs,
                max_new_tokens=most,
                do_sample=False,
                temperature=None,
                top_p=None,
                top_k=None,
                output_logits=True,
                return_dict_in_generate=True,
            )
        tokens = []
        generated = output.sequences[0, inputs["input_ids"].shape[1] :].tolist()
        for token, logits in zip(generated, output.logits, strict=True):
            if token not in self.tokenizer.all_special_ids:
                log_probability = torch.log_softmax(logits[0].float(), dim=-1)[token]
                tokens.append((self.tokenizer.decode([token]), float(log_probability)))
        return tokens


def filled(prompt: str, dialogue: str, examples: Sequence[str] = ()) -> str:
    """Fill in the placeholders of a prompt for a dialogue and for example dialogues."""
    texts = {"{Input Dialogue}": dialogue}
    texts |= {f"{{Example Dialogue {place}}}": text for place, text in enumerate(examples, 1)}
    # All at once, so that braces in a dialogue are not mistaken for a placeholder.
    return re.sub(r"\{[\w ]+\}", lambda place: texts.get(place[0], place[0]), prompt)


def label_probability(answer: Sequence[tuple[str, float]]) -> float:
    """Return the probability of dissatisfaction of an answer; NaN without a label.

    It is 1/2 + p/2 for Dissatisfied and 1/2 - p/2 for Satisfied, with the probability p of the
    token at which the label begins.
    """
    label = re.search(r"\b(dis)?satisfied\b", "".join(token for token, _ in answer), re.IGNORECASE)
    if label is None:
        return math.nan
    end, confidence = 0, 1.0
    for token, log_probability in answer:
        end += len(token)
        if end > label.start():
            confidence = math.exp(log_probability)
            break
    return 0.5 + confidence / 2 if label[1] else 0.5 - confidence / 2


# --- other last responses -------------------------------------------------------------------------


def write_responses(study: Study, samples: pd.DataFrame, models: Path, limit: int | None) -> None:
    """Let the writer write last responses of opposite outcome for test samples."""
    writer = study.writer
    path = study.outputs / "written.csv"
    prompt = study.prompt(writer.prompt)
    test = data.estimated(samples, "test")
    waiting = []
    for _, rows in test.groupby("collection", sort=False):
        # Shuffled; the two labels alternate while both remain.
        order = np.random.default_rng(SEED).permutation(len(rows))
        shuffled = rows.iloc[order]
        place = shuffled.groupby("dissatisfied").cumcount()
        shuffled = shuffled.assign(place=place).sort_values(["place", "dissatisfied"])
        sizes = [size for size in (writer.size, limit) if size]
        waiting.append(shuffled.head(min(sizes, default=len(shuffled))))
    keys = ["collection", "sample"]
    missing = without(pd.concat(waiting), recorded(path, [*keys, "response"]), keys)
    if missing.empty:
        return
    language_model = LanguageModel(writer, models)
    for row in tqdm(missing.itertuples(), total=len(missing), desc="written"):
        text = dialogue_text(row.users, row.systems)
        answer = language_model.answer(filled(prompt, text), writer.tokens)
        written = "".join(token for token, _ in answer).rpartition("SYSTEM:")[2].strip()
        response = written.partition("\n")[0].strip()
        append(
            path,
            pd.DataFrame([(row.collection, row.sample, response)], columns=[*keys, "response"]),
        )


def ask_annotators(study: Study, items: pd.DataFrame) -> bool:
    """Write the files that annotators fill in; return whether all items have a label."""
    asked = {"annotator-1": items, "annotator-2": items}
    pairs = data.pairs_of_labels(study, items)
    if len(pairs) == len(items):
        differ = (pairs["satisfied"] != pairs["satisfied_2"]) | (
            pairs["coherent"] != pairs["coherent_2"]
        )
        asked["adjudicator"] = items[items["item"].isin(pairs.loc[differ, "item"])]
    complete = True
    for annotator, asked_items in asked.items():
        for name, rows in asked_items.groupby("collection"):
            path = study.outputs / "annotations" / f"{name}-{annotator}.csv"
            known = recorded(path, ["item"])
            # Responses come from a model: a spreadsheet must not read one as a formula.
            questions = rows[["item", "context", "response"]].map(harmless)
            questions = questions.assign(question=INSTRUCTION, satisfied="", coherent="")
            questions = questions[~questions["item"].isin(known["item"])]
            if len(questions):
                path.parent.mkdir(parents=True, exist_ok=True)
                pd.concat([known, questions]).to_csv(path, index=False)
            labelled = data.read_labels(study, annotator)["item"]
            if not rows["item"].isin(labelled).all():
                print(f"{path}: answer yes or no in satisfied and coherent, and start again")
                complete = False
    return complete and "adjudicator" in asked


def other_responses(study: Study, samples: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Return the test samples with other last responses, with texts."""
    if study.counterfactuals == "written":
        test = data.estimated(samples, "test")
        other = data.confirmed(test, items, data.settled(study, items))
        responses = other.merge(items, on=["collection", "item"])["response"]
    else:
        other = data.other_responses(study, samples)
        donors = samples.set_index(["collection", "sample"])["systems"].str[-1]
        responses = donors.loc[pd.MultiIndex.from_frame(other[["collection", "donor"]])]
    systems = zip(other["systems"], responses, strict=True)
    other["systems"] = [(*own[:-1], response) for own, response in systems]
    return other.assign(world=study.world)


# --- encoders -------------------------------------------------------------------------------------


class RatingClassifier(torch.nn.Module):
    """BERT with a layer for the five ratings, as in the program of item uss.

    It reads the last two layers: the state of [CLS], and the sum of all states divided by the root
    of their number.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.bert = transformers.AutoModel.from_pretrained(folder)
        self.dropout = torch.nn.Dropout(0.4)
        self.head = torch.nn.Linear(4 * self.bert.config.hidden_size, 5)
        torch.nn.init.normal_(self.head.weight, std=0.02)

    def forward(self, input_ids, attention_mask, labels=None):
        """Return the loss, if there are labels, and the logits of the ratings 1 to 5."""
        output = self.bert(input_ids, attention_mask, output_hidden_states=True)
        states = torch.cat(output.hidden_states[-2:], dim=-1)
        weights = attention_mask.unsqueeze(-1).float()
        mean = (states * weights).sum(dim=1) / weights.sum(dim=1).sqrt()
        logits = self.head(self.dropout(torch.cat([states[:, 0], mean], dim=-1)))
        if labels is None:
            return {"logits": logits}
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


def dialogue_tokens(tokenizer, row, estimator: Estimator) -> list[int]:
    """Return [CLS] and the last tokens of a dialogue, with a limit per utterance.

    An utterance ends with [SEP], unless it is cut.
    """
    last = -estimator.exchanges if estimator.exchanges else None
    training = estimator.training
    tokens: list[int] = []
    for exchange in zip(row.users[last:], row.systems[last:], strict=True):
        for text in filter(None, exchange):
            ids = [*tokenizer.encode(text, add_special_tokens=False), tokenizer.sep_token_id]
            tokens += ids[: training.utterance or None]
    return [tokenizer.cls_token_id, *tokens[-training.length + 1 :]]


def predict_by_encoder(
    estimator: Estimator,
    train: pd.DataFrame,
    valid: pd.DataFrame,
    samples: pd.DataFrame,
    models: Path,
) -> np.ndarray:
    """Fine-tune an encoder, and return the probability of dissatisfaction of samples.

    With the program of item uss it learns the five ratings at a constant rate, and the epoch with
    the highest macro recall on the validation set is used. Otherwise it learns the two labels.
    """
    training, folder = estimator.training, models / estimator.model
    is_uss = training.program == "uss"
    transformers.set_seed(SEED)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    if is_uss:
        network = RatingClassifier(folder)
    else:
        network = transformers.AutoModelForSequenceClassification.from_pretrained(
            folder, num_labels=2, local_files_only=True
        )

    def encoded(rows: pd.DataFrame) -> list[dict]:
        labels = rows["rating"] - 1 if is_uss else rows["dissatisfied"].astype(int)
        tokens = [dialogue_tokens(tokenizer, row, estimator) for row in rows.itertuples()]
        return [{"input_ids": ids, "labels": int(label)} for ids, label in zip(tokens, labels)]  # noqa: B905 - of one table

    def probabilities(logits: np.ndarray) -> np.ndarray:
        shares = torch.softmax(torch.tensor(logits).float(), dim=-1).numpy()
        return shares[:, :2].sum(axis=1) if is_uss else shares[:, 1]

    def macro_recall(prediction: transformers.EvalPrediction) -> dict[str, float]:
        labels = prediction.label_ids < 2 if is_uss else prediction.label_ids == 1
        found = probabilities(prediction.predictions) >= 0.5
        return {"recall": recall_score(labels, found, average="macro", zero_division=0)}

    best = {"save_strategy": "no"}
    if is_uss:
        best = {"save_strategy": "epoch", "eval_strategy": "epoch", "save_total_limit": 1}
        best |= {"load_best_model_at_end": True, "metric_for_best_model": "recall"}
    with tempfile.TemporaryDirectory() as work:
        trainer = transformers.Trainer(
            network,
            transformers.TrainingArguments(
                work,
                num_train_epochs=training.epochs,
                per_device_train_batch_size=training.batch,
                learning_rate=training.rate,
                lr_scheduler_type="constant" if is_uss else "linear",
                bf16=training.precision == "bfloat16",
                seed=SEED,
                report_to="none",
                use_cpu=not torch.cuda.is_available(),
                dataloader_pin_memory=torch.cuda.is_available(),
                **best,
            ),
            data_collator=transformers.DataCollatorWithPadding(tokenizer),
            train_dataset=encoded(train),
            eval_dataset=encoded(valid),
            compute_metrics=macro_recall,
        )
        trainer.train()
        return probabilities(trainer.predict(encoded(samples)).predictions)


# --- Hawkes process -------------------------------------------------------------------------------


class Hawkes(torch.nn.Module):
    r"""A Hawkes process over the exchanges of a dialogue, in discrete time.

    .. math:: \lambda_k(t) = \ln(1 + \exp(\mu_k(t) + \sum_{j < t} \alpha_k(j)
        e^{-\delta_k (t - j)}))

    The kinds k are satisfied and dissatisfied; mu and alpha are linear in the vector of an exchange
    (alpha after a softplus). In the spirit of ASAP (Ye et al., 2023), which has no kernel of a
    given form and fine-tunes BERT to encode the exchanges.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.base = torch.nn.Parameter(torch.zeros(width + 1, 2))
        self.jump = torch.nn.Parameter(torch.zeros(width + 1, 2))
        self.slowness = torch.nn.Parameter(torch.zeros(2))
        self.jump.data[-1] = -2.0  # small jumps at first

    def forward(self, vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the share of both kinds in the intensity at the last exchange.

        ``vectors`` has shape (samples, exchanges, width + 1), with a 1 at the end of each vector;
        ``mask``, shape (samples, exchanges, 1), marks where there is an exchange.
        """
        softplus = torch.nn.functional.softplus
        distance = torch.arange(vectors.shape[1] - 1, -1, -1.0).unsqueeze(1)
        jumps = softplus(vectors @ self.jump) * mask
        kernel = torch.exp(-softplus(self.slowness) * distance[:-1])
        excitement = (jumps[:, :-1] * kernel).sum(dim=1)
        intensity = softplus(vectors[:, -1] @ self.base + excitement)
        return intensity / intensity.sum(dim=1, keepdim=True)


def exchange_vectors(features, samples: pd.DataFrame) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the vectors of exchanges and the mask, as `Hawkes.forward` takes them."""
    lengths = samples["users"].map(len).to_numpy()
    texts, place = np.unique(exchange_texts(samples), return_inverse=True)
    vectors = features.transform(texts)[place]
    vectors = np.column_stack([vectors, np.ones(len(vectors))])
    # The last exchange of every dialogue is at the last position.
    mask = np.arange(lengths.max()) >= lengths.max() - lengths[:, np.newaxis]
    padded = np.zeros((*mask.shape, vectors.shape[1]))
    padded[mask] = vectors
    return torch.tensor(padded, dtype=torch.float32), torch.tensor(mask).float().unsqueeze(2)


def exchange_texts(samples: pd.DataFrame) -> list[str]:
    """Return the text of every exchange, in the order of the samples."""
    texts = []
    for row in samples.itertuples():
        texts += [f"{user}\n{reply}" for user, reply in zip(row.users, row.systems, strict=True)]
    return texts


def predict_by_hawkes(
    estimator: Estimator, train: pd.DataFrame, times: int, samples: pd.DataFrame
) -> np.ndarray:
    """Fit a Hawkes process, and return the probability of dissatisfaction of samples.

    Exchanges are bags of words (latent semantic analysis). Up-sampling is a weight.
    """
    training = estimator.training
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=3, sublinear_tf=True)
    weighted_words = words.fit_transform(sorted(set(exchange_texts(train))))
    width = min(training.width, weighted_words.shape[1])  # a trial has few words
    features = make_pipeline(words, TruncatedSVD(width, random_state=SEED).fit(weighted_words))
    vectors, mask = exchange_vectors(features, train)
    labels = torch.tensor(train["dissatisfied"].to_numpy(dtype=np.int64)).unsqueeze(1)
    weights = torch.where(labels == 1, float(times), 1.0)
    process = Hawkes(vectors.shape[2] - 1)
    optimiser = torch.optim.Adam(process.parameters(), lr=training.rate)
    for _ in range(training.steps):
        likelihoods = process(vectors, mask).gather(1, labels).clamp_min(1e-9).log()
        loss = -(weights * likelihoods).sum() / weights.sum()
        # The intercepts are not penalised.
        squares = process.base[:-1].square().sum() + process.jump[:-1].square().sum()
        optimiser.zero_grad()
        (loss + training.penalty * squares).backward()
        optimiser.step()
    with torch.inference_mode():
        return process(*exchange_vectors(features, samples))[:, 1].numpy()


# --- predictions ----------------------------------------------------------------------------------


def without(samples: pd.DataFrame, known: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Return the samples whose keys are not in a table."""
    keys = list(keys)
    is_known = pd.MultiIndex.from_frame(samples[keys]).isin(pd.MultiIndex.from_frame(known[keys]))
    return samples[~is_known]


def drawn_dialogues(samples: pd.DataFrame, most: int) -> pd.DataFrame:
    """Return the samples of a number of randomly drawn dialogues; 0: of all."""
    ids = samples["sample"].str.split(":")
    dialogues, lines = ids.str[0].astype(int), ids.str[1].astype(int)
    drawn = np.random.default_rng(SEED).permutation(np.sort(dialogues.unique()))
    places = dict(zip(drawn, range(len(drawn)), strict=True))
    order = samples.assign(place=dialogues.map(places), line=lines)
    order = order.sort_values(["place", "line", "world"])
    return order[order["place"] < (most or len(drawn))]


def example_dialogues(train: pd.DataFrame) -> list[str]:
    """Draw a satisfied and a dissatisfied training sample of three exchanges.

    The thesis shows one of each, and does not state which.
    """
    shortest = train[train["turn"] == train["turn"].min()]
    rng = np.random.default_rng(SEED)
    examples = []
    # In the order of the prompt's labels; a rating of 3 is an example of neither.
    for pool in (shortest[shortest["rating"] >= 4], shortest[shortest["rating"] < 3]):
        drawn = pool.iloc[rng.integers(len(pool))]
        examples.append(dialogue_text(drawn["users"], drawn["systems"]))
    return examples


def predict_by_prompt(
    language_model: LanguageModel, prompt: str, train: pd.DataFrame, samples: pd.DataFrame
) -> Iterator[float]:
    """Yield the probability of dissatisfaction of each sample, after two training samples."""
    examples = example_dialogues(train)
    for row in tqdm(samples.itertuples(), total=len(samples), desc=language_model.name):
        text = dialogue_text(row.users, row.systems)
        answer = language_model.answer(filled(prompt, text, examples), LABEL_TOKENS)
        yield label_probability(answer)


def label(
    study: Study,
    system: str,
    samples: pd.DataFrame,
    worlds: pd.DataFrame,
    models: Path,
    limit: int | None,
) -> None:
    """Let an estimator label the test and validation samples, in every setup."""
    estimator = study.estimators[system]
    path = study.outputs / f"{system}.csv"
    other = worlds[worlds["world"] == study.world]
    turned = {name: data.digest(rows) for name, rows in other.groupby("collection")}
    settings = {"estimator": estimator.model_dump(mode="json"), "seed": SEED, "turned": turned}
    if estimator.prompt:
        settings["estimator"]["prompt"] = study.prompt(estimator.prompt)
    settings_path = study.outputs / "settings" / f"{system}.json"
    if not settings_path.is_file():
        settings_path.parent.mkdir(parents=True, exist_ok=True)
        settings_path.write_text(json.dumps(settings, indent=1, sort_keys=True) + "\n")
    elif json.loads(settings_path.read_text())["turned"] != turned:
        raise ValueError(f"{path}: has predictions for other responses; remove it and its settings")

    language_model = None
    for name in data.COLLECTIONS:
        rows = worlds[worlds["collection"] == name]
        train = data.estimated(samples[samples["collection"] == name], "train")
        for setup, times in estimator.setups.items():
            to_label = rows.assign(system=system, setup=setup)
            if estimator.kind == "few-shot":
                to_label = drawn_dialogues(
                    to_label[to_label["world"] != "valid"], estimator.dialogues
                )
            to_label = to_label.groupby("world", sort=False).head(limit) if limit else to_label
            missing = without(to_label, recorded(path, [*KEYS, "dissatisfaction"]), KEYS)
            if missing.empty:
                continue
            print(f"{system}, {name}, {setup}: {len(missing)} samples")
            if estimator.kind == "few-shot":
                language_model = language_model or LanguageModel(estimator, models)
                prompt = study.prompt(estimator.prompt)
                answers = predict_by_prompt(language_model, prompt, train, missing)
                for row, probability in zip(missing.itertuples(), answers, strict=True):
                    values = [*(getattr(row, key) for key in KEYS), probability]
                    append(path, pd.DataFrame([values], columns=[*KEYS, "dissatisfaction"]))
                continue
            if times == 0:  # under-sampling: as many satisfied samples as dissatisfied ones
                smaller = train["dissatisfied"].value_counts().min()
                train_set = train.groupby("dissatisfied").sample(smaller, random_state=SEED)
            else:
                train_set = train
            train_set = train_set.head(limit) if limit else train_set
            times = max(times, 1)
            if estimator.kind == "hawkes":
                probabilities = predict_by_hawkes(estimator, train_set, times, missing)
            else:
                repeats = np.where(train_set["dissatisfied"], times, 1)
                repeated = train_set.loc[train_set.index.repeat(repeats)]
                valid = rows[rows["world"] == "valid"].head(limit or None)
                probabilities = predict_by_encoder(estimator, repeated, valid, missing, models)
            append(path, missing[KEYS].assign(dissatisfaction=probabilities))


# --- users' own satisfaction ----------------------------------------------------------------------


def with_shares_exchanged(train: pd.DataFrame) -> pd.DataFrame:
    """Draw as few dialogues of the more common label as exchanges the shares of both labels."""
    sizes = train["dissatisfied"].value_counts()
    most, fewest = sizes.index[0], sizes.iloc[-1]
    common = train[train["dissatisfied"] == most]
    drawn = common.sample(max(round(fewest**2 / len(common)), 1), random_state=SEED)
    return pd.concat([drawn, train[train["dissatisfied"] != most]])


def predict_users(
    study: Study, system: str, users: pd.DataFrame, models: Path
) -> list[tuple[str, pd.DataFrame]]:
    """Return the dialogues that an estimator labels, with its probabilities, by setup.

    It learns from one half of the users and labels the dialogues of the other. The examples of a
    few-shot estimator are a dialogue of each label, so it has one setup only.
    """
    estimator = study.users[system]
    numbers = np.random.default_rng(SEED).permutation(users["user"].unique())
    in_half = users["user"].isin(numbers[: len(numbers) // 2])
    predictions = []
    is_few_shot = estimator.kind == "few-shot"
    language_model = LanguageModel(estimator, models) if is_few_shot else None
    for setup in estimator.setups if is_few_shot else (data.USERS_SHARES, data.EXCHANGED):
        for is_train in (in_half, ~in_half):
            train, rows = users[is_train], users[~is_train]
            if setup == data.EXCHANGED:
                train = with_shares_exchanged(train)
            if language_model:
                ratings = np.where(train["dissatisfied"], 1, 5)
                rated = train.assign(turn=train["users"].map(len), rating=ratings)
                prompt = study.prompt(estimator.prompt)
                rated = rated[rated["turn"] >= 3]
                answers = list(predict_by_prompt(language_model, prompt, rated, rows))
            elif estimator.kind == "hawkes":
                answers = predict_by_hawkes(estimator, train, 1, rows)
            else:
                answers = predict_by_encoder(estimator, train, train, rows, models)
            predictions.append((setup, rows.assign(dissatisfaction=answers)))
    return predictions


def label_users(study: Study, models: Path) -> None:
    """Let the estimators of users label their dialogues (item crsarena)."""
    path = study.outputs / "users.csv"
    columns = ["dialogue", "system", "setup", "dissatisfaction"]
    known = set(recorded(path, columns)["system"])
    settings = {"seed": SEED, "estimators": {}}
    for system, estimator in study.users.items():
        settings["estimators"][system] = estimator.model_dump(mode="json")
        if system not in known:
            parts = predict_users(study, system, read_users(), models)
            labelled = [rows.assign(system=system, setup=setup) for setup, rows in parts]
            append(path, pd.concat(labelled)[columns])
    settings_path = study.outputs / "settings" / "users.json"
    settings_path.parent.mkdir(parents=True, exist_ok=True)
    settings_path.write_text(json.dumps(settings, indent=1, sort_keys=True) + "\n")


def main() -> None:
    """Write responses, ask annotators, and label samples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="replica")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--models", type=Path, default=Path("models"))
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    study = data.read_study(options.config)
    study = study.model_copy(update={"outputs": options.output or study.outputs})

    if study.users:
        label_users(study, options.models)
    samples = pd.concat([read_collection(study, name)[1] for name in data.COLLECTIONS])
    write_responses(study, samples, options.models, options.limit)
    items = annotated_items(samples, data.written_responses(study))
    if not ask_annotators(study, items) and study.counterfactuals == "written":
        return
    parts = [data.estimated(samples, "valid").assign(world="valid")]
    parts.append(data.estimated(samples, "test").assign(world="Main"))
    worlds = pd.concat([*parts, other_responses(study, samples, items)], ignore_index=True)
    for system in study.estimators:
        label(study, system, samples, worlds, options.models, options.limit)


if __name__ == "__main__":
    main()
