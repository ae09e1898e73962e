"""Gendered-term substitution: grammar, capitals, names, the involution, and what was left."""

from collections.abc import Iterable, Iterator

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise_studies.ranking_bias.substitution import (
    SPACY_MODEL,
    GenderPairs,
    Tagger,
    Token,
    match_case,
    restored_share,
    spacy_tagger,
    substitute,
)
from plain_tagger import plain_tagger

WORDS = [
    ("he", "she"), ("himself", "herself"), ("man", "woman"), ("men", "women"),
    ("son", "daughter"), ("king", "queen"), ("father", "mother"), ("mr", "mrs"),
    ("mr.", "mrs."), ("actor", "actress"),
]  # fmt: skip
NAMES = [
    ("John", "Mary"),
    ("Will", "Grace"),
    ("Mark", "Rose"),
    ("Austin", "Paris"),
    ("King", "Reina"),
]
PAIRS = GenderPairs.of(WORDS, NAMES, [("gentlemen", "ladies")])


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    for package in ("spacy", SPACY_MODEL):
        pytest.importorskip(
            package, reason=f"{package} is not installed: pip install 'equipoise[models]'"
        )
    return spacy_tagger()


def changed(text: str, tagger: Tagger) -> str:
    return str(substitute([("d", text)], PAIRS, tagger).texts["text"].item())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I saw her yesterday.", "I saw him yesterday."),
        ("I gave her her book.", "I gave him his book."),
        ("Her mother called her.", "His father called him."),
        ("His dog bit him.", "Her dog bit her."),
        ("The red car is his.", "The red car is hers."),
        ("That friend of hers is tall.", "That friend of his is tall."),
        ("He hurt himself.", "She hurt herself."),
        ("HE SAID: SHE IS A KING.", "SHE SAID: HE IS A QUEEN."),
        ("Mother-in-law and stepfather", "Father-in-law and stepfather"),
        ("Mr. Brown met Mrs. Green.", "Mrs. Brown met Mr. Green."),
        ("The actor's sons left.", "The actress's sons left."),
        ("He's late; she'd left.", "She's late; he'd left."),
        ("John met Mary at noon.", "Mary met John at noon."),
        ("Will you come?", "Will you come?"),
        ("Mark my words.", "Mark my words."),
        ("He lives in Paris, France.", "She lives in Paris, France."),
        ("The rose in the garden.", "The rose in the garden."),
        ("Ladies and gentlemen", "Ladies and ladies"),
        ("Women\nand  men\twaited", "Men\nand  women\twaited"),
    ],
)
def test_grammar_names_and_capitals(text: str, expected: str, tagger: Tagger) -> None:
    assert changed(text, tagger) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Her mother told her that she met him.",
        "His brother saw the KING and his men.",
        "Mr. Brown gave Mary her book, and she thanked him.",
        "John Smith said that he saw her.",
        "The woman hurt herself; the man did not.",
    ],
)
def test_substituting_twice_gives_the_text_back(text: str, tagger: Tagger) -> None:
    once = changed(text, tagger)
    assert once != text
    assert changed(once, tagger) == text


names_of_people = st.sampled_from([name for pair in NAMES for name in pair])
gendered = st.sampled_from([word for pair in WORDS for word in pair])
cased = st.sampled_from([str.lower, str.upper, str.capitalize])
plain = st.sampled_from(["rain", "Falls", "a", "I", "robin", "3.5", ""])
word = st.one_of(plain, names_of_people, st.builds(lambda text, case: case(text), gendered, cased))


@given(st.lists(word, max_size=12).map(" ".join))
def test_with_a_fixed_tagger_substitution_is_an_involution(text: str) -> None:
    """Pairs and capitals come back; the tagger reads both texts alike, so names do too."""
    assert changed(changed(text, plain_tagger), plain_tagger) == text


@given(st.lists(word, max_size=12).map(" ".join))
def test_the_report_counts_every_word_that_changed(text: str) -> None:
    result = substitute([("d", text)], PAIRS, plain_tagger)
    before, after = text.split(" "), str(result.texts["text"].item()).split(" ")
    done = result.report[result.report["outcome"] == "substituted"]["occurrences"].sum()
    assert done == sum(a != b for a, b in zip(before, after, strict=True))
    assert result.tokens == len(before)


@given(st.text(alphabet="aAbB-é'1", min_size=1, max_size=6))
def test_capitals_follow_the_term_that_is_replaced(like: str) -> None:
    written = match_case("queen-mother", like)
    assert written.lower() == "queen-mother"
    letters = [letter for letter in like if letter.isalpha()]
    assert written[0].isupper() == bool(letters and letters[0].isupper())


def test_the_report_tells_what_was_left_and_why() -> None:
    def no_persons(texts: Iterable[str]) -> Iterator[list[Token]]:
        for tokens in plain_tagger(texts):
            yield [token._replace(person=False) for token in tokens]

    documents = [("d1", "Mark said she and Robin will"), ("d2", "she King")]
    result = substitute(documents, PAIRS, no_persons, watched=["Robin", "she"])
    assert result.report.to_numpy().tolist() == [
        ["she", "he", "substituted", 2],
        ["king", "queen", "substituted", 1],  # no person's name, but a word
        ["mark", "", "not a name", 1],
        ["robin", "", "no counterpart", 1],
    ]


def test_proper_nouns_may_count_as_names() -> None:
    token = Token("Paris", "", "NNP", False, False)
    assert PAIRS.counterpart(token) == (None, "not a name")
    assert PAIRS.counterpart(token, "proper noun") == ("austin", "")
    assert PAIRS.counterpart(token._replace(tag="NN"), "proper noun") == (None, "not a name")


def test_leftover_names_of_a_list_are_paired_in_its_order_and_only_once() -> None:
    terms = [
        ("Ursula", "f"),
        ("Enoch", "m"),
        ("John", "m"),
        ("Veda", "f"),
        ("Retha", "f"),
        ("Fidel", "m"),
        ("he", "m"),
    ]
    names = PAIRS.completed(terms).names
    assert (names["ursula"], names["enoch"], names["veda"], names["fidel"]) == (
        "enoch",
        "ursula",
        "fidel",
        "veda",
    )
    assert "retha" not in names
    assert all(names[names[name]] == name for name in names)


@pytest.mark.parametrize(
    ("words", "names", "one_way", "said"),
    [
        ([("he", "she"), ("He", "they")], [], [], "he"),
        ([("him", "her")], [], [], "her, him"),
        ([("he", "he")], [], [], "he"),
        ([], [("John", "Mary"), ("Mary", "Josef")], [], "mary"),
        ([("he", "she")], [], [("she", "he")], "she"),
    ],
)
def test_pairs_that_contradict_each_other_are_refused(
    words: list[tuple[str, str]],
    names: list[tuple[str, str]],
    one_way: list[tuple[str, str]],
    said: str,
) -> None:
    with pytest.raises(ValueError, match=f"without one counterpart: {said}$"):
        GenderPairs.of(words, names, one_way)


def test_names_of_three_groups_have_no_counterpart() -> None:
    with pytest.raises(ValueError, match="f, m, n"):
        PAIRS.completed([("Ursula", "f"), ("Enoch", "m"), ("Sam", "n")])


def test_a_tagger_that_loses_text_is_caught() -> None:
    with pytest.raises(ValueError, match="changed the text of document d"):
        substitute(
            [("d", "a b")],
            PAIRS,
            lambda texts: ([Token("a", "", "NN", False, False)] for _ in texts),
        )


def test_restored_words_are_counted_in_their_order() -> None:
    assert restored_share(["a b", ""], ["a c", ""]).to_numpy().tolist() == [[2, 1], [0, 0]]
    with pytest.raises(ValueError, match="2 words came back with 1"):
        restored_share(["a b"], ["a"])


def test_texts_whose_grammar_does_not_matter_are_not_tagged_and_come_out_alike(
    tagger: Tagger,
) -> None:
    """The quick way over a collection: most texts have no word that its grammar decides on."""
    texts = {
        "pronoun": "She lost her book and told him that the book is his.",
        "name": "Then John and Will will go with Mary.",
        "words": "The queen and the nurse saw a king.",
        "none": "Ships sail on rivers, and the moon shines.",
    }
    cases = list(texts.items())
    quick = substitute(cases, PAIRS, spacy_tagger(asked=PAIRS.hang_on_grammar), watched=["ships"])
    slow = substitute(cases, PAIRS, tagger, watched=["ships"])
    pd.testing.assert_frame_equal(quick.texts, slow.texts)
    pd.testing.assert_frame_equal(quick.report, slow.report)
    assert quick.tokens == slow.tokens
    tags = [
        {token.tag for token in tokens}
        for tokens in spacy_tagger(asked=PAIRS.hang_on_grammar)(texts.values())
    ]
    assert [bool(of_text - {""}) for of_text in tags] == [True, True, False, False]
