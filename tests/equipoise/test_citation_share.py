"""Guards the share of a source among citations, against the definition written plainly."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import InputError, Note
from equipoise.measures.citations import (
    NO_SOURCE,
    OVER_RELEVANT,
    OVER_RETRIEVED,
    citation_share,
    citation_verdicts,
    citations,
    in_brackets,
)
from equipoise.statistics import mean_interval

ANSWERS = st.lists(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=5).flatmap(
        lambda sources: st.tuples(
            st.just(tuple(sources)),
            st.lists(st.integers(1, len(sources)), max_size=4),
            st.sets(st.integers(1, len(sources)), max_size=3),
        )
    ),
    min_size=1,
    max_size=8,
)


def table_of(answers: list[Any]) -> pd.DataFrame:
    rows = []
    for place, (sources, cited, relevant) in enumerate(answers):
        text = "So " + " ".join(f"[{number}]" for number in cited)
        rows.append((f"q{place}", text, sources, tuple(sorted(relevant))))
    return pd.DataFrame(rows, columns=["question", "answer", "sources", "relevant"])


def share_of(source: str, sources: Any, numbers: Any) -> float:
    """Share of a source among documents, counted one by one."""
    documents = [sources[number - 1] for number in numbers]
    return documents.count(source) / len(documents)


def means_of(scores: pd.DataFrame) -> pd.DataFrame:
    return scores[scores["topic"] == ""].set_index(["attribute", "measure"])


@settings(max_examples=60, deadline=None)
@given(ANSWERS)
def test_shares_are_those_of_the_definition(answers: list[Any]) -> None:
    if not any(cited for _, cited, _ in answers):
        with pytest.raises(ValueError, match="got none for"):
            citation_share(table_of(answers), resamples=9)
        return
    scores = citation_share(table_of(answers), resamples=9)
    means = means_of(scores)
    citing = [(sources, set(cited), relevant) for sources, cited, relevant in answers if cited]
    with_relevant = [answer for answer in citing if answer[2]]
    for source in {name for sources, _, _ in answers for name in sources}:
        excesses = []
        for sources, cited, _ in citing:
            everything = range(1, len(sources) + 1)
            excesses.append(
                share_of(source, sources, cited) - share_of(source, sources, everything)
            )
        row = means.loc[(source, OVER_RETRIEVED)]
        assert row["value"] == pytest.approx(np.mean(excesses))
        assert (row["count"], row["left_out"]) == (len(citing), len(answers) - len(citing))
        by_question = scores[
            (scores["topic"] != "")
            & (scores["attribute"] == source)
            & (scores["measure"] == OVER_RETRIEVED)
        ]
        assert by_question["value"].tolist() == pytest.approx(excesses)
        if with_relevant:
            excesses = [
                share_of(source, sources, cited) - share_of(source, sources, relevant)
                for sources, cited, relevant in with_relevant
            ]
            row = means.loc[(source, OVER_RELEVANT)]
            assert row["value"] == pytest.approx(np.mean(excesses))
            assert row["count"] == len(with_relevant)
            # Shares are of the questions that the difference is of.
            among_relevant = [share_of(source, sources, rel) for sources, _, rel in with_relevant]
            row = means.loc[(source, "relevant-share")]
            assert row["value"] == pytest.approx(np.mean(among_relevant))
        among_retrieved = [sources.count(source) / len(sources) for sources, _, _ in citing]
        row = means.loc[(source, "retrieved-share")]
        assert row["value"] == pytest.approx(np.mean(among_retrieved))
    # What one source has above its share others have below theirs.
    assert means.xs(OVER_RETRIEVED, level="measure")["value"].sum() == pytest.approx(0)


def many(n_questions: int = 60) -> pd.DataFrame:
    """Answers to questions with three documents, of which that of a is cited most often."""
    rng = np.random.default_rng(5)
    answers = []
    for _ in range(n_questions):
        cited = [1] if rng.random() < 0.7 else [int(rng.integers(2, 4))]
        answers.append((("a", "b", "b"), cited, {1}))
    return table_of(answers)


def test_the_interval_is_that_of_the_mean_over_questions() -> None:
    answers = many().assign(sources=[(*"abcde",)] * 60)
    scores = citation_share(answers, resamples=999, seed=3, level=0.5)
    values = scores.query(f"topic != '' and attribute == 'a' and measure == '{OVER_RETRIEVED}'")
    expected = mean_interval(values["value"], np.random.default_rng(3), level=0.5, resamples=999)
    row = means_of(scores).loc[("a", OVER_RETRIEVED)]
    assert (row["low"], row["high"]) == pytest.approx(expected)
    together = means_of(
        citation_share(answers, resamples=999, seed=3, level=0.5, mean_intervals="simultaneous")
    ).loc[("a", OVER_RETRIEVED)]
    # Five sources share the half.
    wider = mean_interval(values["value"], np.random.default_rng(3), level=0.9, resamples=999)
    assert (together["low"], together["high"]) == pytest.approx(wider)


def test_sentences_decide_by_the_interval() -> None:
    sentences = citation_verdicts(citation_share(many(), resamples=999))
    more = re.fullmatch(
        r"a: (.+)% of the citations, 33\.3% of the retrieved: \+(.+) points \[(.+), (.+)\], "
        r"n = 60, 100% read: cited more than its share",
        sentences[0],
    )
    assert more is not None
    assert float(more[1]) - 33.3 == pytest.approx(float(more[2]), abs=0.11)
    assert float(more[3]) > 0
    assert sentences[1].startswith("b: ")
    assert sentences[1].endswith("cited less than its share")
    # All of the relevant is of a: that it is cited often is no favour.
    assert "100.0% of the relevant" in sentences[2]
    assert sentences[2].endswith("cited less than its share")
    even = [(("a", "b", "b"), [place % 3 + 1], {1}) for place in range(12)]
    few = citation_verdicts(citation_share(table_of(even), resamples=999))
    assert re.search(r"inconclusive; 80% power for 5 points needs n = [\d,]+", few[0])
    fewer = citation_verdicts(citation_share(table_of(even[:9]), resamples=999))
    assert fewer[0].endswith("n = 9, 100% read: no verdict, an interval needs n = 10")


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.0, 0.2, "inconclusive"),
        (-0.2, 0.0, "inconclusive"),
        (-0.2, -0.1, "cited less than its share"),
    ],
)
def test_an_interval_that_touches_0_decides_nothing(low: float, high: float, verdict: str) -> None:
    rows = [("retrieved-share", 0.5, 0.4, 0.6), (OVER_RETRIEVED, (low + high) / 2, low, high)]
    scores = pd.DataFrame(rows, columns=["measure", "value", "low", "high"])
    (sentence,) = citation_verdicts(scores.assign(topic="", attribute="a", count=40, read=1.0))
    assert f"n = 40, 100% read: {verdict}" in sentence


def test_groups_are_scored_apart() -> None:
    first = many().assign(model="x")
    second = many().assign(model="y", answer="So [2][3]")
    scores = citation_share(pd.concat([first, second]), by=["model"], resamples=99)
    means = scores[scores["topic"] == ""].set_index(["model", "attribute", "measure"])["value"]
    assert means["y", "b", OVER_RETRIEVED] == pytest.approx(1 / 3)
    alone = means_of(citation_share(many(), resamples=99))["value"]
    assert means["x", "a", OVER_RETRIEVED] == pytest.approx(alone["a", OVER_RETRIEVED])
    assert scores["topic"].eq("").to_numpy().nonzero()[0].min() == scores["topic"].ne("").sum()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"sources": [()] * 60}, "at least one document for at least one answer"),
        ({"relevant": [(4,)] * 60}, "relevant must number the documents"),
    ],
)
def test_what_cannot_be_counted_is_refused(change: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        citation_share(many().assign(**change))


def test_citations_of_nothing_shown_are_an_error() -> None:
    with pytest.raises(InputError, match="at least one of 60 answers must have"):
        citation_share(many().assign(answer="So [9]"))


# --- how citations are written --------------------------------------------------------------------

MARKS = {
    "footnote": "[^{}]",
    "lenticular": "【{}†source】",
    "doc": "[doc {}]",
    "tag": "<cite>{}</cite>",
    "paren": "({})",
}


@pytest.mark.parametrize("style", MARKS)
def test_each_answer_is_read_in_its_own_style(style: str) -> None:
    answers = many()
    other = answers["answer"].str.replace(r"\[(\d)\]", MARKS[style].format(r"\1"), regex=True)
    mixed = answers.assign(answer=other.where(answers.index % 2 == 0, answers["answer"]))
    with pytest.warns(Note, match=f"{style} in 30"):
        scores = citation_share(mixed, resamples=9)
    pd.testing.assert_frame_equal(scores, citation_share(answers, resamples=9))


ADDRESSES = {"wiki.org/rain_(film)": 1, "news.org/2024/05/b": 2}


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("So https://www.news.org/2024/05/b.", ("So [2].", "link")),
        ("So [the news](http://News.org/2024/05/b/?utm_source=x#y).", ("So [2].", "link")),
        ("So ([w](https://wiki.org/rain_(film))).", ("So ([1]).", "link")),
        ("So [1](https://news.org/2024/05/b).", ("So [2].", "bracket")),  # their own numbers
        ("So [^1].\n\n[^1]: https://news.org/2024/05/b", ("So [2].\n\n", "footnote")),
        ("So [2].\n[2] [Rain](https://wiki.org/rain_(film))", ("So [1].\n", "bracket")),
        ("So [1].\n1. https://news.org/2024/05/b", ("So [2].\n", "bracket")),
        ("So [[1]](https://news.org/2024/05/b).", ("So [2].", "bracket")),
        ("1. Rain https://wiki.org/rain_(film)", ("[1]", "link")),
        ("Sources:\n[1] https://news.org/2024/05/b", ("Sources:\n[2]", "bracket")),
        ("See https://news.org/2024/05/c [1].", ("See https://news.org/2024/05/c [1].", "bracket")),
        ("So [1](https://other.org).", ("So [1000000000].", "")),
        ("It rained¹, 10³ km² in x².", ("It rained[1], 10³ km² in x².", "superscript")),
        ("It rained<sup>2</sup>.", ("It rained[2].", "superscript")),
        ("【4:0†file】", ("【4:0†file】", "")),
    ],
)
def test_links_and_marks_are_read(text: str, read: tuple[str, str]) -> None:
    texts, styles = in_brackets([text], "auto", [2], [ADDRESSES])
    assert (texts[0], styles[0]) == read


# A list of references below an answer: its heading, what is before and between its items, and the
# marks in the answer and in the list.
HEADINGS = [
    "",
    "Sources:",
    "**References**",
    "## Sources",
    "References:\n",
    "Bibliography",
    "出典：",
]
ITEMS = {
    "[{}]": ["[{}] {}", "- [{}] {}", "[{}]: {}", "* **[{}]** {}", "> [{}] {}"],
    "[{}] ": ["[{}] [{}](https://a.org/x) and more", "[{}] {}, https://a.org/x"],
    "[^{}]": ["[^{}]: {}"],
    "【{}】": ["【{}】{}", "- 【{}】 {}"],
    "[Source {}]": ["[Source {}] {}.pdf", "- [Source {}]: {}"],
    "<sup>{}</sup>": ["<sup>{}</sup> {}", "- <sup>{}</sup> [{}](https://a.org/x)"],
}
LISTS = st.sampled_from([(mark, item) for mark, items in ITEMS.items() for item in items])
NAMES = ["Alpha", "Beta", "Gamma", "Delta"]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    LISTS,
    st.sampled_from(HEADINGS),
    st.sampled_from(["", "\n\nLet me know if you need more.", "\n"]),
    st.booleans(),
)
def test_a_list_of_references_changes_nothing(
    cited: list[int], forms: tuple[str, str], heading: str, end: str, in_one_line: bool
) -> None:
    mark, item = forms
    body = "Boils " + " so ".join(mark.format(number) for number in cited) + "."
    items = [item.format(number, name) for number, name in enumerate(NAMES, start=1)]
    references = "\n".join(["", *filter(None, [heading]), *items])
    if in_one_line and ":" in heading and item[0] in "[【<" and "https" not in item:
        references = f"{heading} {' '.join(items)}"
        end = ""
    numbers = {"a.org/x": 1, "b.org/x": 2}
    text = f"{body}\n{references}{end if heading else ''}"
    for style in ("auto", "bracket"):
        with_list = in_brackets([text], style, [4], [numbers] if style == "auto" else None)
        alone = in_brackets([body], style, [4], [numbers] if style == "auto" else None)
        read = citations(with_list[0][0], 4).cited
        if style == "auto" and "https" in item and mark[0] == "[":
            assert read == (1,)  # its links say which document each number is
        elif mark.startswith("[{}]") or style == "auto":
            assert read == citations(alone[0][0], 4).cited


@pytest.mark.parametrize(
    "references",
    [
        "[1] - Alpha\n[2] - Beta",
        '[1] "alpha" (2019)\n[2] "beta"',
        "| # | Source |\n|---|---|\n| [1] | Alpha |\n| [2] | Beta |",
        "## Sources\n\n| # | Source |\n|---|---|\n| [1] | Alpha |\n| [2] | Beta |",
        "References:\n- Alpha [1]\n- Beta [2]",
        "References (2)\n----------\n[1] Alpha\n\n[2] Beta",
        "Here are the sources:\n[1] Alpha\n[2] Beta",
        "📚 **Sources**\n[1] alpha\n[2] beta",
        "<h3>References</h3>\n<ol>\n<li>[1] Alpha</li>\n<li>[2] Beta</li>\n</ol>",
        "5. References\r\n[1] Alpha\r\n[2] Beta",
        "Sources:<br>[1] Alpha<br>[2] Beta",
        "Sources:\n- [1] Alpha\n  - p. 3\n- [2] Beta\n  - p. 4",
        "**References:** [1] Alpha; [2] Beta.",
        "[1] Alpha [2] Beta",
        "Sources:\n(Document 1) Alpha\n(Document 2) Beta",
        "Sources:\n1. [Alpha](https://wiki.org/a)\n2. [Beta](https://news.org/2024/05/b)",
    ],
)
def test_forms_of_lists_of_references(references: str) -> None:
    texts, _ = in_brackets([f"Boils [1].\n\n{references}"], documents=[2], addresses=[ADDRESSES])
    assert citations(texts[0], 2).cited == (1,)


@pytest.mark.parametrize(
    "text",
    [
        "So [1].\n\n[1] shows this.\n[2] does not.",  # begins with citations
        "[1] Rain fell.\n\n[2] Snow fell.\n[3] Hail fell.",
        "So [1].\n\nSources:\n- Oranges [2]\n- Lemons [3]",  # a part of the answer
        "So [1].\n\nThere are two sources:\n[2] shows one.\n[3] shows the other.",
        "So [1].\n\n## Sources\n\n| Source | Content |\n|---|---|\n| Oranges | 5 [2] |",
        "Good sources of vitamin C:\n1. Oranges\n   They are good [2].\nAnd [1].",
        "So [1].\n\nSources:\n1. Oranges [2]\n2. Lemons [3]",
        "So [1].\n\n1. Rain [2]\n2. Snow [3]",
        "Rain. Source: [1]\n\nSnow. Source: [2]",
        "Rain. Sources: [1] and [2].",
        "Rain [1]. See references [2] and [3].",
        "Sources:\n[1] Alpha\n[2] Beta",  # nothing else cites
    ],
)
def test_what_is_no_list_of_references_is_read(text: str) -> None:
    (read,) = in_brackets([text], documents=[4])[0]
    assert citations(read, 4) == citations(text, 4)


def test_enumerations_are_no_citations_where_answers_cite_otherwise() -> None:
    texts = ["So [1]."] * 20 + ["Either (1) rain or (2) snow."]
    assert in_brackets(texts, documents=[2] * 21)[1] == ["bracket"] * 20 + [""]
    texts = ["So [1]."] * 20 + ["So it is (1)."] * 10
    assert in_brackets(texts, documents=[2] * 30)[1] == ["bracket"] * 20 + ["paren"] * 10


def test_an_expression_captures_numbers_only() -> None:
    with pytest.raises(ValueError, match="captures numbers only"):
        in_brackets(["So https://n.org/05/a"], r"https?://\S+")


STYLES_OF_NUMBERS = ["[{}]", "[^{}]", "【{}】", "[doc {}]", "<cite>{}</cite>", "<sup>{}</sup>"]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sets(st.integers(1, 4), min_size=1), min_size=1, max_size=8),
    st.sampled_from(STYLES_OF_NUMBERS),
)
def test_numbers_from_0_are_those_from_1(cited: list[set[int]], mark: str) -> None:
    def texts_from(first: int) -> list[str]:
        marked = [[mark.format(number - 1 + first) for number in numbers] for numbers in cited]
        return ["It boils " + ", ".join(marks) + "." for marks in marked]

    documents = [4] * len(cited)
    expected = in_brackets(texts_from(1), documents=documents)
    assert in_brackets(texts_from(0), documents=documents, first_number="0") == expected
    if any(1 in numbers for numbers in cited):
        with pytest.warns(Note, match="numbers are read from 0"):
            assert in_brackets(texts_from(0), documents=documents) == expected


def test_an_invented_0_does_not_move_the_other_numbers() -> None:
    texts = [*many()["answer"], "So [0]."]
    with pytest.warns(Note, match=r"1 of 61 answers .* numbers are read from 1"):
        assert in_brackets(texts, documents=[3] * 61)[0] == texts
    assert in_brackets(texts, documents=[3] * 61, first_number="1")[0] == texts
    links = ["So [0], [news](https://news.org/2024/05/b)."]
    read = in_brackets(links, documents=[2], addresses=[ADDRESSES], first_number="0")[0]
    assert read == ["So [1], [2]."]


# --- what is read ---------------------------------------------------------------------------------


def test_a_question_counts_once_with_the_mean_of_its_answers() -> None:
    answers = many()
    with pytest.warns(Note, match="60 answers are to a question answered before"):
        twice = citation_share(pd.concat([answers, answers]), resamples=99)
    pd.testing.assert_frame_equal(twice, citation_share(answers, resamples=99))
    other = answers.assign(answer="So [2]")
    with pytest.warns(Note, match="answered before"):
        both = means_of(citation_share(pd.concat([answers, other]), resamples=9))["value"]
    parts = [means_of(citation_share(part, resamples=9))["value"] for part in (answers, other)]
    pd.testing.assert_series_equal(both, (parts[0] + parts[1]) / 2)


def test_the_order_of_questions_does_not_matter() -> None:
    scores = [citation_share(part, resamples=99) for part in (many(), many()[::-1])]
    pd.testing.assert_frame_equal(
        means_of(scores[0]).sort_index(), means_of(scores[1]).sort_index()
    )


def test_a_verdict_on_some_says_how_far_the_others_would_have_to_be() -> None:
    texts = ["So it is.", "", "So [9].", "So [1a]."]
    answers = many()
    answers.loc[:3, "answer"] = texts
    # The fifth has no documents.
    for name in ("sources", "relevant"):
        answers[name] = answers[name].where(answers.index != 4, [()] * 60)
    with pytest.warns(Note, match="1 of 56 citations are out of range"):
        scores = citation_share(answers, resamples=99)
    reasons = ["no citation", "no answer", "cites only what was not retrieved"]
    reasons += ["only malformed citations", "no retrieved document"]
    assert scores.attrs["not_read"] == {"answers": 60} | dict.fromkeys(reasons, 1)
    assert means_of(scores).loc[("a", OVER_RETRIEVED), "read"] == pytest.approx(55 / 60)
    sentences = citation_verdicts(scores)
    what = "of the citations not read are its own"
    assert sentences[0].endswith(
        f"n = 55, 91% read: cited more than its share; this holds however many {what}"
    )
    a_third = answers.assign(answer=answers["answer"].where(answers.index % 3 > 0, ""))
    with pytest.warns(Note, match="1 of 38 citations are out of range"):
        some = citation_share(a_third)
    sentence = citation_verdicts(some)[0]
    assert re.search(rf"; this holds unless less than \d+% {what} \(76% of those read", sentence)
    # Documents without a source are counted, and are no source.
    without = many().assign(sources=[("a", NO_SOURCE, "b")] * 60)
    scores = citation_share(without, resamples=99)
    assert set(scores["attribute"]) == {"a", "b"}
    assert "66% read: " in citation_verdicts(scores)[0]
