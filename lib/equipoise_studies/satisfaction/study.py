"""What chapter 3 is run on: collections, other last responses, estimators, as a config names them."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import pandas as pd

from equipoise.files import read_columns
from equipoise_compendium import project
from equipoise_compendium.report import Basis
from equipoise_studies.config import ChapterConfig, NamedFile, recorded, settings
from equipoise_studies.satisfaction import data
from equipoise_studies.satisfaction.annotation import Annotations
from equipoise_studies.satisfaction.data import Collection, Level
from equipoise_studies.satisfaction.prompts import INPUT, read_prompt
from equipoise_studies.systems.encoders import Precision
from equipoise_studies.systems.language_models import Device

NOTEBOOK = "thesis_ch3_satisfaction"
_UPSTREAM = Literal["", "MWOZ", "SGD", "ReDial", "CCPE"]


@settings
class Source:
    """Rated dialogues: a file of item uss by its name, or one's own files in the same formats.

    ``dialogues``: a file as `read_dialogues` reads it. ``valid``, ``test``: files of samples as
    `read_samples` reads them, which tell the parts of the data; without them a tenth of the
    dialogues each is drawn. ``level``: whether turns or whole dialogues are samples; whole ones
    have no turned responses. ``about``: what they are, in words.
    """

    upstream: _UPSTREAM = ""
    dialogues: NamedFile | None = None
    valid: NamedFile | None = None
    test: NamedFile | None = None
    level: Level = "turn"
    about: str = ""

    def __post_init__(self) -> None:
        if bool(self.upstream) == (self.dialogues is not None):
            raise ValueError(
                "a collection is one of item uss (upstream), or a file of dialogues of one's own"
            )
        if self.dialogues is not None and not self.about:
            raise ValueError("a collection of one's own says what it is (about)")
        if (self.valid is None) != (self.test is None) or (
            self.valid is not None and self.upstream
        ):
            raise ValueError("valid and test come together, with dialogues of one's own")

    def load(self, name: str) -> Collection:
        """The collection, with no other responses yet."""
        if self.dialogues is None:
            return data.read_upstream(name, self.upstream, self.level)
        parts = (
            {}
            if self.valid is None or self.test is None
            else {"valid": self.valid, "test": self.test}
        )
        return data.read_collection(name, self.dialogues, parts, level=self.level)

    def files(self) -> list[Path]:
        """Its own files."""
        return [path for path in (self.dialogues, self.valid, self.test) if path is not None]


@settings
class Writer:
    """A language model that writes last responses of opposite outcome.

    ``model``: a GGUF file or folder of a checkpoint, below the folder of models, or what
    ``endpoint`` calls it; ``about``: what the report calls it. ``prompt``: a text with ``{Input
    Dialogue}``. ``size``: test samples of each collection; 0 for all. ``tokens``: most of a
    response. ``annotations``: folder of what people are asked about them, and answered;
    ``readers``: two annotators and a third who settles, or one reader; ``who``: what these are.
    """

    model: str
    prompt: NamedFile
    about: str = ""
    endpoint: str = ""
    device: Device = "cpu"
    size: int = 0
    tokens: int = 100
    annotations: NamedFile | None = None
    readers: int = 2
    who: str = "people"

    def __post_init__(self) -> None:
        if self.readers not in (1, 2):
            raise ValueError("one reader or two annotators")


@settings
class Training:
    """How an encoder is fine-tuned, or a Hawkes process fitted.

    ``epochs``: passes over the training samples, up-sampled ones included; or else ``steps``.
    ``length``: tokens kept, from the end. ``precision``: of an encoder's states. ``width``:
    dimensions of an exchange. ``penalty``: of the squared weights.
    """

    epochs: int = 0
    steps: int = 0
    batch: int = 32
    length: int = 512
    rate: float = 2e-5
    precision: Precision = "float32"
    width: int = 128
    penalty: float = 1e-4

    def __post_init__(self) -> None:
        if bool(self.epochs) == bool(self.steps):
            raise ValueError("training lasts some epochs, or else some steps")


@settings
class Estimator:
    """An estimator of user satisfaction.

    ``model``: a checkpoint below the folder of models: the folder of an encoder, a GGUF file or
    folder of a language model; or what ``endpoint`` calls it. A Hawkes process has none where its
    exchanges are bags of words. ``exchanges``: how many it is shown, from the end; 0 for all.
    ``up_sampling``: how often a dissatisfied sample is trained on. ``under_sampling``: whether it
    is trained once with as many satisfied samples as dissatisfied ones, too. ``prompt``: a text
    with ``{Example Dialogue 1}``, ``{Example Dialogue 2}`` and ``{Input Dialogue}``. ``dialogues``:
    of each collection, drawn by seed, that a few-shot estimator labels; 0 for all. ``printed``: its
    model in Table 3.6.
    """

    kind: Literal["few-shot", "encoder", "hawkes"]
    about: str
    model: str = ""
    endpoint: str = ""
    device: Device = "cpu"
    exchanges: int = 0
    prompt: NamedFile | None = None
    dialogues: int = 0
    training: Training | None = None
    up_sampling: tuple[int, ...] = (1,)
    under_sampling: bool = False
    printed: str = ""

    def __post_init__(self) -> None:
        few_shot = self.kind == "few-shot"
        if few_shot != (self.prompt is not None) or few_shot == (self.training is not None):
            raise ValueError(
                "a few-shot estimator has a prompt and no training, others the other way round"
            )
        if not self.model and self.kind != "hawkes":
            raise ValueError(f"{self.kind} has a model")
        if not few_shot and (self.endpoint or self.dialogues):
            raise ValueError("an endpoint, and a number of dialogues, are for few-shot estimators")
        if self.kind == "hawkes" and self.device != "cpu":
            raise ValueError("a Hawkes process is fitted on the processor")
        if (
            not self.up_sampling
            or min(self.up_sampling) < 1
            or (few_shot and self.up_sampling != (1,))
        ):
            raise ValueError("up-sampling is by 1 or more, of estimators that are trained")

    @property
    def setups(self) -> dict[str, int]:
        """Its setups in Table 3.6's words, with how often a dissatisfied sample stands; 0 for under-sampling."""
        if self.kind == "few-shot":
            return {"Few-shot": 1}
        named = {
            "w/o up-sampling" if times == 1 else f"up-sampling x{times}": times
            for times in self.up_sampling
        }
        return named | ({"under-sampling": 0} if self.under_sampling else {})


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
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if lacking := set(data.COLLECTIONS) - set(self.collections):
            raise ValueError(
                f"the collections of the thesis are wanted, found no {' and no '.join(sorted(lacking))}"
            )
        if any(self.collections[name].level != "turn" for name in data.COLLECTIONS):
            raise ValueError(f"the samples of {' and '.join(data.COLLECTIONS)} are turns")
        if (self.counterfactuals == "file") != (self.responses is not None):
            raise ValueError("counterfactuals of a file, and no others, name their responses")
        people = self.writer is not None and self.writer.annotations is not None
        if self.counterfactuals == "written" and not people:
            raise ValueError(
                "counterfactuals that are written name their writer, and the folder of its annotations"
            )
        if not any({10, 20} <= set(one.up_sampling) for one in self.estimators.values()):
            raise ValueError(
                "a trained estimator is up-sampled by 10 and by 20, which the thesis compares"
            )
        kinds = {estimator.kind == "few-shot" for estimator in self.estimators.values()}
        if kinds != {True, False}:
            raise ValueError(
                "the estimators are few-shot ones and trained ones, one of each at least"
            )

    @property
    def world(self) -> str:
        """What the test set with other last responses is called."""
        return "swapped" if self.counterfactuals == "swapped" else "CF"

    @property
    def data_basis(self) -> Basis:
        """Whether the collections are the thesis's own, so that what they hold is compared."""
        files = [self.collections[name].upstream for name in data.COLLECTIONS]
        return "recomputed" if files == ["MWOZ", "SGD"] else self.basis

    @property
    def label_prompt(self) -> str:
        """The prompt of the first few-shot estimator."""
        return read_prompt(
            next(one.prompt for one in self.estimators.values() if one.prompt is not None), [INPUT]
        )

    @property
    def writing_prompt(self) -> str:
        """The prompt of the writer, or the thesis's where there is none."""
        usual = project.root() / "data" / "studies" / "satisfaction" / "counterfactual-prompt.txt"
        return read_prompt(self.writer.prompt if self.writer else usual, [INPUT])

    @cached_property
    def plain(self) -> dict[str, Collection]:
        """Every collection, with no other responses yet."""
        return {name: source.load(name) for name, source in self.collections.items()}

    @cached_property
    def held(self) -> dict[str, Collection]:
        """Every collection, the turn-level ones with other last responses."""
        return {
            name: part if part.level == "dialogue" else self._turned(part)
            for name, part in self.plain.items()
        }

    def _turned(self, part: Collection) -> Collection:
        if self.counterfactuals == "swapped":
            return data.with_swapped(part)
        if self.responses is not None:
            given = read_columns(self.responses, ["collection", "sample", "response"])
            own = given[given["collection"] == part.name]
            unknown = set(own["sample"]) - set(part.part("test")["sample"])
            if unknown or own["sample"].duplicated().any() or own.empty:
                told = (
                    f"{len(unknown)} of {len(own)} responses are of no test sample, or of one twice"
                )
                raise ValueError(f"{self.responses.name}, {part.name}: {told}")
            return data.with_responses(part, own)
        return data.with_responses(part, self.annotations(part).confirmed())

    def written(self, name: str) -> pd.DataFrame:
        """What the writer wrote for a collection: columns collection, sample, response."""
        table = read_columns(self.file("written.csv"), ["collection", "sample", "response"])
        return table[table["collection"] == name].reset_index(drop=True)

    def annotations(self, part: Collection) -> Annotations:
        """What people are asked, and answered, about what was written for a collection."""
        if self.writer is None or self.writer.annotations is None:
            raise ValueError("no folder of annotations is named")
        return Annotations(
            self.writer.annotations, part, self.written(part.name), self.writer.readers
        )

    def file(self, name: str) -> Path:
        """A recorded file, noted as used."""
        return recorded(self.record / name, self.chapter)

    def predictions(self) -> pd.DataFrame:
        """What the estimators of the config said, of its setups."""
        paths = {name: self.file(f"{name}.csv") for name in self.estimators}
        for name in self.estimators:
            self.file(f"settings/{name}.json")
        table = data.predictions(self.held.values(), paths)
        wanted = {(name, setup) for name, one in self.estimators.items() for setup in one.setups}
        return table[
            [key in wanted for key in zip(table["system"], table["setup"], strict=True)]
        ].reset_index(drop=True)

    def compared(self, scores: pd.DataFrame) -> dict[str, Any]:
        """What `Report.table` takes for Table 3.6, of scores by collection, test data, model and setup."""
        return {
            "ours": scores,
            "keys": ["test data", "model", "setup"],
            "basis": self.basis,
            "tolerance": self.tolerance,
        }
