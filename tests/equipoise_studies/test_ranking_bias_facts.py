"""Facts of chapter 4: the same bytes when made again, and what its notebook takes from them."""

import pytest

from equipoise_compendium import facts, project
from equipoise_studies.ranking_bias.data import WITH_FACTS, gender_groups, read_counted
from equipoise_studies.ranking_bias.facts import TABLES, TOKENISATIONS

FOLDER = project.root() / "data" / "facts" / "ranking_bias"


def test_every_fact_table_is_described() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name in TABLES:
        assert f"`{name}`" in readme, name
        for column in facts.read("ranking_bias", name).columns:
            assert f"`{column}`" in readme, f"{name}: {column}"


@pytest.mark.parametrize("name", WITH_FACTS)
def test_a_collection_has_its_counts_under_every_tokenisation(name: str) -> None:
    occurrences = {}
    for tokens in TOKENISATIONS:
        collection = read_counted(name, tokens)
        assert set(collection.qrels["document"]) <= set(collection.term_counts.documents)
        assert (collection.term_counts.counts.sum(axis=1) <= collection.term_counts.lengths).all()
        for term_list in ("long", "short"):
            assert collection.term_counts.magnitudes(gender_groups(term_list)).sum() > 0
        occurrences[tokens] = collection.term_counts.counts.sum()
    # a term beside a mark of punctuation is a term between words only
    assert occurrences["word"] > occurrences["whitespace"] >= occurrences["space"] > 0


def test_term_lists_are_326_and_64_terms_of_two_groups() -> None:
    long, short = gender_groups("long"), gender_groups("short")
    assert (len(long.terms), len(short.terms)) == (326, 64)
    assert long.shared == ()
    assert set(short.terms) <= set(long.terms)
