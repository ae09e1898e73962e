"""What chapter 3 is run on, as a config names it: collections, other responses, estimators."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

import pandas as pd

from equipoise.files import read_columns
from equipoise.options import Count, NonNegative
from equipoise_compendium import project
from equipoise_compendium.printed import printed_table
from equipoise_compendium.report import Basis
from equipoise_studies.config import (
    ChapterConfig,
    Misfit,
    NamedFile,
    Numbers,
    Rate,
    Url,
    Whole,
    recorded,
    settings,
    unknown_names,
)
from equipoise_studies.recording import unreachable
from equipoise_studies.satisfaction import data
from equipoise_studies.satisfaction.annotation import Annotations, items_of, items_of_facts
from equipoise_studies.satisfaction.asking import Answers
from equipoise_studies.satisfaction.data import COLLECTIONS, FILES, Collection, Level
from equipoise_studies.satisfaction.prompts import INPUT, read_prompt
from equipoise_studies.systems.encoders import Precision
from equipoise_studies.systems.endpoint import Endpoint
from equipoise_studies.systems.language_models import Device

NOTEBOOK = "thesis_ch3_satisfaction"
UPSTREAM = Literal["", "MWOZ", "SGD", "ReDial", "CCPE"]


def _endpoint(model: Writer | Estimator) -> Endpoint | None:
    """Where a model is asked; None for one of this machine."""
    if not model.endpoint:
        return None
    return Endpoint(
        model.endpoint,
        model.model,
        key_variable=model.key_variable or None,
        patience=model.patience,
    )


@settings
class Source:
    """Rated dialogues: a file of item uss by its name, or one's own files in the same formats.

    ``dialogues``: a file as `read_dialogues` reads it. ``valid``, ``test``: files of samples as
    `read_samples` reads them, which tell the parts of the data; without them a tenth of the
    dialogues each is drawn. ``level``: whether turns or whole dialogues are samples; whole ones
    have no turned responses. ``about``: what they are, in words.
    """

    upstream: UPSTREAM = ""
    dialogues: NamedFile | None = None
    valid: NamedFile | None = None
    test: NamedFile | None = None
    level: Level = "turn"
    about: str = ""

    def misfits(self) -> Iterator[Misfit | str]:
        """What does not go together."""
        if bool(self.upstream) == (self.dialogues is not None):
            yield (
                "a collection is one of item uss (upstream), or a file of dialogues of one's own"
            )
        if self.dialogues is not None and not self.about:
            yield "a collection of one's own says what it is (about)"
        # Files of item uss have their parts in item asap.
        parts_lack = (self.valid is None) != (self.test is None)
        if parts_lack or (self.valid is not None and self.upstream):
            yield "valid and test come together, with dialogues of one's own"

    def has_facts(self, name: str) -> bool:
        """Whether facts are committed, so that its samples can be scored without the texts."""
        return self.level == "turn" and bool(self.upstream) and FILES.get(name) == self.upstream

    def read_texts(self, name: str) -> Collection:
        """The collection with its texts, and with no other responses yet."""
        if self.dialogues is None:
            return data.read_upstream(name, self.upstream, self.level)
        # Without files of parts, they are drawn.
        parts = {}
        if self.valid is not None and self.test is not None:
            parts = {"valid": self.valid, "test": self.test}
        return data.read_collection(name, self.dialogues, parts, level=self.level)

    def unreachable(self) -> tuple[str, ...]:
        """Why files of it that are upstream cannot be had, a reason for each of those."""
        if not self.upstream:
            return ()
        return unreachable(data.upstream_files(self.upstream).values())

    def files(self) -> list[Path]:
        """Its own files."""
        return [path for path in (self.dialogues, self.valid, self.test) if path is not None]


def _misfits_of_asking(model: Writer | Estimator) -> Iterator[Misfit]:
    """A key that no endpoint is there to be sent, and prices that are not two."""
    if model.key_variable and not model.endpoint:
        yield Misfit("key_variable", f"{model.key_variable}, without an endpoint", "an endpoint")
    if len(model.prices) not in (0, 2):
        found = ", ".join(map(str, model.prices))
        yield Misfit("prices", found, "two: of a million tokens of prompt, and of answer")


@settings
class Writer:
    """A language model that writes last responses of opposite outcome.

    ``model``: a GGUF file or folder of a checkpoint, below the folder of models, or what
    ``endpoint`` calls it; ``about``: what the report calls it. ``key_variable``: the environment
    variable whose key is sent to this endpoint; without one, none is. ``patience``: seconds in all
    that one answer is waited for while it limits the rate of requests; ``prices``: of a million
    tokens of prompt and of answer, in ``currency``. ``source``: where it is had; ``billions``: of
    its weights, for the estimate of time. ``prompt``: a text with ``{Input Dialogue}``. ``size``:
    test samples of each collection; 0 for all. ``tokens``: most of a response. ``annotations``:
    folder of what people are asked about them, and answered; ``readers``: two annotators and a
    third who settles, or one reader; ``who``: what these are.
    """

    model: str
    prompt: NamedFile
    about: str = ""
    endpoint: Url = ""
    key_variable: str = ""
    patience: NonNegative = 3600.0
    prices: tuple[NonNegative, ...] = ()
    currency: str = "USD"
    source: str = ""
    billions: NonNegative = 0.0
    device: Device = "cpu"
    size: Whole = 0
    tokens: Count = 100
    annotations: NamedFile | None = None
    readers: int = 2
    who: str = "people"

    def misfits(self) -> Iterator[Misfit | str]:
        """What does not go together."""
        if self.readers not in (1, 2):
            yield "one reader or two annotators"
        yield from _misfits_of_asking(self)

    @property
    def served(self) -> Endpoint | None:
        """Where it is asked; None on this machine."""
        return _endpoint(self)


@settings
class Training:
    """How an encoder is fine-tuned, or a Hawkes process fitted.

    ``epochs``: passes over the training samples, up-sampled ones included; or else ``steps``.
    ``length``: tokens kept, from the end. ``precision``: of an encoder's states. ``width``:
    dimensions of an exchange. ``penalty``: of the squared weights. ``program``: an encoder is
    trained as that of item uss is (`rating_encoder`), of each utterance ``utterance`` tokens.
    """

    epochs: Whole = 0
    steps: Whole = 0
    batch: Count = 32
    length: Count = 512
    rate: Rate = 2e-5
    precision: Precision = "float32"
    width: Count = 128
    penalty: NonNegative = 1e-4
    program: Literal["", "uss"] = ""
    utterance: Whole = 0

    def misfits(self) -> Iterator[Misfit | str]:
        """What does not go together."""
        if bool(self.epochs) == bool(self.steps):
            yield "training lasts some epochs, or else some steps"
        if (self.program == "uss") != bool(self.utterance) or (self.program and not self.epochs):
            yield "the program of item uss, and no other training, cuts utterances; it takes epochs"
        if self.program and self.precision != "float32":
            yield "the program of item uss computes in float32"


@settings
class Estimator:
    """An estimator of user satisfaction.

    ``model``: a checkpoint below the folder of models: the folder of an encoder, a GGUF file or
    folder of a language model; or what ``endpoint`` calls it, to which ``key_variable``,
    ``patience`` and ``prices`` belong as they do to a writer's, as do ``source`` and ``billions``
    to the model. A Hawkes process has none where its
    exchanges are bags of words. ``exchanges``: how many it is shown, from the end; 0 for all.
    ``up_sampling``: how often a dissatisfied sample is trained on. ``under_sampling``: whether it
    is trained once with as many satisfied samples as dissatisfied ones, too. ``prompt``: a text
    with ``{Example Dialogue 1}``, ``{Example Dialogue 2}`` and ``{Input Dialogue}``. ``dialogues``:
    of each collection, drawn by seed, that a few-shot estimator labels; 0 for all. ``answers``: how
    a few-shot model on this machine is read. ``printed``: its model in Table 3.6.
    """

    kind: Literal["few-shot", "encoder", "hawkes"]
    about: str
    model: str = ""
    endpoint: Url = ""
    key_variable: str = ""
    patience: NonNegative = 3600.0
    prices: tuple[NonNegative, ...] = ()
    currency: str = "USD"
    source: str = ""
    billions: NonNegative = 0.0
    device: Device = "cpu"
    exchanges: Whole = 0
    prompt: NamedFile | None = None
    dialogues: Whole = 0
    answers: Answers = "words"
    training: Training | None = None
    up_sampling: Numbers = (1,)
    under_sampling: bool = False
    printed: str = ""

    def misfits(self) -> Iterator[Misfit | str]:
        """What does not go together."""
        few_shot = self.kind == "few-shot"
        if few_shot != (self.prompt is not None) or few_shot == (self.training is not None):
            yield ("a few-shot estimator has a prompt and no training, others the other way round")
        if not self.model and self.kind != "hawkes":
            yield f"{self.kind} has a model"
        if not few_shot and (self.endpoint or self.dialogues):
            yield "an endpoint, and a number of dialogues, are for few-shot estimators"
        if self.kind == "hawkes" and self.printed == "ASAP":
            yield (
                "ASAP fine-tunes BERT with its Hawkes process: this one, whose exchanges are not "
                "learned, is not held against its printed cells"
            )
        if self.training is not None and self.training.program and self.kind != "encoder":
            yield "the program of item uss trains an encoder"
        if self.training is not None and self.training.program and self.exchanges:
            yield "the program of item uss reads whole dialogues, from their end"
        if self.kind == "hawkes" and self.device != "cpu":
            yield "a Hawkes process is fitted on the processor"
        if not self.up_sampling or min(self.up_sampling) < 1:
            yield "up-sampling is by 1 or more, of estimators that are trained"
        if few_shot and self.up_sampling != (1,):
            yield "up-sampling is by 1 or more, of estimators that are trained"
        yield from _misfits_of_asking(self)

    @property
    def served(self) -> Endpoint | None:
        """Where it is asked; None on this machine."""
        return _endpoint(self)

    @property
    def setups(self) -> dict[str, int]:
        """Its setups in Table 3.6's words, and how often a dissatisfied sample stands in each.

        0 stands for under-sampling.
        """
        if self.kind == "few-shot":
            return {"Few-shot": 1}
        setups = {}
        for times in self.up_sampling:
            setups["w/o up-sampling" if times == 1 else f"up-sampling x{times}"] = times
        if self.under_sampling:
            setups["under-sampling"] = 0
        return setups


@settings
class Study(ChapterConfig):
    """A run of chapter 3 (thesis sections 3.5 and 3.6).

    ``counterfactuals``: the other last responses: swapped between dialogues; written by ``writer``
    and confirmed by people; or those of ``responses``, a CSV file with the columns collection,
    sample, response, of which every one counts. ``record``: folder of what was recorded.
    ``tolerance``: how far a cell may lie from the printed one.
    """

    chapter: ClassVar[str] = "satisfaction"
    collections: dict[str, Source]
    estimators: dict[str, Estimator]
    record: NamedFile
    counterfactuals: Literal["swapped", "written", "file"] = "swapped"
    responses: NamedFile | None = None
    writer: Writer | None = None
    tolerance: NonNegative = 0.0

    def misfits(self) -> Iterator[Misfit | str]:
        """What does not go together."""
        lacking = set(COLLECTIONS) - set(self.collections)
        if lacking:
            names = " and no ".join(sorted(lacking))
            yield f"the collections of the thesis are wanted, found no {names}"
        present = [self.collections[name] for name in COLLECTIONS if name in self.collections]
        if any(collection.level != "turn" for collection in present):
            yield f"the samples of {' and '.join(COLLECTIONS)} are turns"
        if (self.counterfactuals == "file") != (self.responses is not None):
            yield "counterfactuals of a file, and no others, name their responses"
        if self.counterfactuals == "written" and not self.has_annotators:
            yield (
                "counterfactuals that are written name their writer, "
                "and the folder of its annotations"
            )
        if not any(
            {10, 20} <= set(estimator.up_sampling) for estimator in self.estimators.values()
        ):
            yield ("a trained estimator is up-sampled by 10 and by 20, which the thesis compares")
        rows = [estimator.printed for estimator in self.estimators.values() if estimator.printed]
        printed_models = dict.fromkeys(printed_table("thesis/table-3.6")["model"])
        yield from unknown_names("estimators", "model of Table 3.6", rows, printed_models)
        if self.stands_for == "thesis" and self.counterfactuals == "swapped":
            found = "swapped responses, which are not the thesis's"
            yield Misfit("counterfactuals", found, "written or file, or stands_for: replica")
        kinds = {estimator.kind == "few-shot" for estimator in self.estimators.values()}
        if kinds != {True, False}:
            yield ("the estimators are few-shot ones and trained ones, one of each at least")

    # --- what the config says

    @property
    def world(self) -> str:
        """What the test set with other last responses is called."""
        return "swapped" if self.counterfactuals == "swapped" else "CF"

    @property
    def has_annotators(self) -> bool:
        """Whether written responses are read and labelled."""
        return self.writer is not None and self.writer.annotations is not None

    @property
    def other_data(self) -> str:
        """What tells a file of one's own from the thesis's collection: its test samples."""
        # Files of item uss are told by their sha256, when they are fetched.
        printed = printed_table("thesis/table-3.5").set_index("label").loc["Total"]
        for name in COLLECTIONS:
            source = self.collections[name]
            if source.upstream == FILES[name]:
                continue
            if source.upstream:
                return f"{source.upstream} in the place of {name}"
            n_samples = len(self.labelled(name).part("test"))
            wanted = int(printed[f"{name} Main"])
            if n_samples != wanted:
                return f"{n_samples:,} test samples of {name}, where the thesis has {wanted:,}"
        return ""

    @property
    def data_basis(self) -> Basis:
        """Whether the collections are the thesis's own, so that what they hold is compared."""
        # Tables 3.1 and 3.2 are of the data alone, whatever the models are.
        files = [self.collections[name].upstream for name in COLLECTIONS]
        return "recomputed" if files == list(FILES.values()) else self.basis

    @property
    def label_prompt(self) -> str:
        """The prompt of the first few-shot estimator."""
        prompts = [estimator.prompt for estimator in self.estimators.values()]
        return read_prompt(next(prompt for prompt in prompts if prompt is not None), [INPUT])

    @property
    def writing_prompt(self) -> str:
        """The prompt of the writer, or the thesis's where there is none."""
        path = project.root() / "data" / "studies" / "satisfaction" / "counterfactual-prompt.txt"
        if self.writer is not None:
            path = self.writer.prompt
        return read_prompt(path, [INPUT])

    # --- collections

    @cached_property
    def _texts_by_name(self) -> dict[str, Collection]:
        return {}

    def texts(self, name: str) -> Collection:
        """A collection with its texts and no other responses yet, read once.

        Raises `equipoise_compendium.registry.DataUnreachable` where they are not to be had.
        """
        # A file takes seconds to read, and a plan asks for it many times.
        if name not in self._texts_by_name:
            self._texts_by_name[name] = self.collections[name].read_texts(name)
        return self._texts_by_name[name]

    @cached_property
    def _labelled_by_name(self) -> dict[str, Collection]:
        return {}

    def labelled(self, name: str) -> Collection:
        """A collection with no other responses yet: of facts, or of texts where there are none."""
        if not self.collections[name].has_facts(name):
            return self.texts(name)
        if name not in self._labelled_by_name:
            self._labelled_by_name[name] = data.collection_of_facts(name)
        return self._labelled_by_name[name]

    def turned_texts(self, name: str) -> Collection:
        """A collection with its texts and its other last responses."""
        return self._with_other_responses(self.texts(name))

    @cached_property
    def test_sets(self) -> dict[str, Collection]:
        """Every collection, of facts if there are any, turn-level ones with other responses."""
        return {name: self._with_other_responses(self.labelled(name)) for name in self.collections}

    def _with_other_responses(self, collection: Collection) -> Collection:
        if collection.level == "dialogue":
            return collection
        if self.counterfactuals == "swapped":
            if collection.has_texts:
                return data.with_swapped(collection)
            return data.with_swaps_of_facts(collection)
        if self.responses is not None:
            return data.with_responses(collection, self._responses_of_file(collection))
        # Items of facts hold no responses, so these come from what was written.
        confirmed = self.annotations(collection.name).confirmed()
        responses = confirmed[["sample"]].merge(self.written(collection.name), on="sample")
        return data.with_responses(collection, responses)

    def _responses_of_file(self, collection: Collection) -> pd.DataFrame:
        """The last responses that the config's file has for a collection."""
        if self.responses is None:
            raise ValueError("no file of responses is named")
        table = read_columns(self.responses, ["collection", "sample", "response"])
        table = table[table["collection"] == collection.name]
        unknown = set(table["sample"]) - set(collection.part("test")["sample"])
        if unknown or table["sample"].duplicated().any() or table.empty:
            raise ValueError(
                f"{self.responses.name}, {collection.name}: {len(unknown)} of {len(table)} "
                "responses are of no test sample, or of one twice"
            )
        return table

    # --- what was recorded

    @property
    def is_committed(self) -> bool:
        """Whether the record is the repository's own, which the committed facts are about."""
        return self.record == project.root().joinpath("data", *data.FOLDER)

    def written(self, name: str) -> pd.DataFrame:
        """What the writer wrote for a collection: columns collection, sample, response."""
        table = read_columns(self.file("written.csv"), ["collection", "sample", "response"])
        return table[table["collection"] == name].reset_index(drop=True)

    def annotations(self, name: str, *, with_texts: bool = False) -> Annotations:
        """What people are asked, and answered, about what was written for a collection.

        ``with_texts``: so that they can be asked; else the committed record needs no texts.
        """
        if self.writer is None or self.writer.annotations is None:
            raise ValueError("no folder of annotations is named")
        # First, so that a missing record is told before missing texts.
        responses = self.written(name)
        if self.is_committed and not with_texts:
            items = items_of_facts(name, responses)
        else:
            items = items_of(self.texts(name), responses)
        return Annotations(self.writer.annotations, name, items, self.writer.readers)

    def file(self, name: str) -> Path:
        """A recorded file, noted as used."""
        return recorded(self.record / name, self.chapter)

    def predictions(self) -> pd.DataFrame:
        """What the estimators of the config said, of its setups."""
        paths = {}
        for name in self.estimators:
            # Noted as used, as their settings are.
            paths[name] = self.file(f"{name}.csv")
            self.file(f"settings/{name}.json")
        table = data.predictions(self.test_sets.values(), paths)
        # A record may hold setups of an earlier config.
        setups = []
        for name, estimator in self.estimators.items():
            setups += [(name, setup) for setup in estimator.setups]
        recorded_setups = pd.MultiIndex.from_frame(table[["system", "setup"]])
        return table[recorded_setups.isin(setups)].reset_index(drop=True)
