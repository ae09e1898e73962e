"""Tokenisations that a lexical ranker can be given: from text to the list of its terms.

Every tokenisation is a callable ``text -> list of str``. Three are those of a search engine's
analysers, two are WordPiece vocabularies: a general one (BERT's) and one of the domain.

References
----------
Unicode Standard Annex 29 (word boundaries), https://unicode.org/reports/tr29/.
Porter, M. (1980): An algorithm for suffix stripping. Program 14 (3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import regex
import Stemmer

from equipoise_studies.systems import models_package

Tokenisation = Callable[[str], list[str]]
"""From a text to the list of its terms."""

UNKNOWN = "[UNK]"

LONGEST = 255
"""Longest token of the standard tokeniser, in characters; a longer one is cut into pieces."""

_BOUNDARY = regex.compile(r"\b", flags=regex.VERSION1 | regex.WORD)
_WORD = regex.compile(r"[\p{Alphabetic}\p{N}]")
_STEMMER = Stemmer.Stemmer("porter", 100_000)

_TOKEN = re.compile(r"\b\w\w+\b")
_LUCENE_STOP_WORD = re.compile(
    "a|an|and|are|as|at|be|but|by|for|if|in|into|is|it|no|not|of|on|or|such|that|the|their|then"
    "|there|these|they|this|to|was|will|with"
)
_SNOWBALL = Stemmer.Stemmer("english")


def standard_words(text: str) -> list[str]:
    """Words between Unicode's default word boundaries that hold a letter or digit, in their order.

    Elasticsearch's standard tokeniser; thesis section 2.3.2.
    """
    tokens = []
    for word in _BOUNDARY.split(text):
        if not _WORD.search(word):
            continue
        for start in range(0, len(word), LONGEST):
            tokens.append(word[start : start + LONGEST])
    return tokens


def porter(words: Iterable[str]) -> list[str]:
    """Porter stems of lower-case words.

    Elasticsearch's Porter stemmer; thesis section 2.3.2. The algorithm of 1980, as the Snowball
    project keeps it.
    """
    return list(_STEMMER.stemWords(list(words)))


def lucene_terms(text: str) -> list[str]:
    """Lower-cased words of two characters and more, stemmed, without Lucene's English stop words.

    The stemmer is Snowball's for English.

    Much like the English analyser of Pyserini, by which thesis section 4.4 ranks.
    """
    words = [word for word in _TOKEN.findall(text.lower()) if not _LUCENE_STOP_WORD.fullmatch(word)]
    return list(_SNOWBALL.stemWords(words))


def standard_analyser(text: str) -> list[str]:
    """Standard analyser (SA): standard words, lower-cased.

    No stop words are left out, as is Elasticsearch's default.

    thesis section 2.3.2.
    """
    return [word.lower() for word in standard_words(text)]


ANALYSERS: Mapping[str, Tokenisation] = {
    "SA": standard_analyser,
    "STM1": lambda text: porter(text.lower().split()),
    "STM2": lambda text: porter(standard_analyser(text)),
}
"""The thesis's three analysers by name: SA, and, Porter-stemmed, STM1 (cut at white space) and STM2
(standard words)."""


def read_tokenizer(path: Path) -> Any:
    """A tokeniser of the library tokenizers from its ``tokenizer.json``; it never cuts or pads."""
    if not path.is_file():
        raise FileNotFoundError(f"no tokeniser at {path.name}")
    tokenizer = models_package("tokenizers").Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _tokens_of(tokenizer: Any) -> Tokenisation:
    return lambda text: list(tokenizer.encode(text, add_special_tokens=False).tokens)


def wordpiece(path: Path) -> Tokenisation:
    """A WordPiece tokenisation from a ``tokenizer.json``, such as the one beside a BERT checkpoint.

    thesis section 2.3.2, "BERT-Token".
    """
    return _tokens_of(read_tokenizer(path))


def domain_wordpiece(texts: Iterable[str], *, size: int = 31_090) -> Tokenisation:
    """A WordPiece tokenisation whose vocabulary is learned from texts, lower-cased here.

    ``size``: largest vocabulary; the default is that of SciBERT, whose own vocabulary this
    replaces.

    thesis section 2.3.2, "SciBERT-Token": SciBERT learned its vocabulary from 1.14 million papers;
    this one is learned from the collection at hand, with pieces that occur at least twice.
    """
    if size < 1:
        raise ValueError(f"a vocabulary needs a positive size, found {size}")
    library = models_package("tokenizers")
    texts = list(texts)

    def fresh(model: Any) -> Any:
        tokenizer = library.Tokenizer(model)
        tokenizer.normalizer = library.normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
        return tokenizer

    learner = fresh(library.models.WordPiece(unk_token=UNKNOWN))
    letters = sorted(set(learner.normalizer.normalize_str(" ".join(texts))) - {" "})
    # The trainer breaks ties by id, and gives ids in the order of a hash table: single letters
    # that come before all others fix it.
    initial = [UNKNOWN, *letters, *("##" + letter for letter in letters)]
    trainer = library.trainers.WordPieceTrainer(
        vocab_size=max(size, len(initial)),
        min_frequency=2,
        special_tokens=initial,
        show_progress=False,
    )
    learner.train_from_iterator(texts, trainer)
    # A new tokeniser: the letters are no special tokens of the text.
    return _tokens_of(fresh(library.models.WordPiece(learner.get_vocab(), unk_token=UNKNOWN)))
