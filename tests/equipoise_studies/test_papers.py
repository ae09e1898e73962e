"""Guards what is said of the papers against their texts, where these are beside the mirror."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from equipoise.attributes import AttributeSet, read_attributes
from equipoise.loaders.transcripts import (
    nugget_frame,
    parse_transcripts,
    turn_frame,
)
from equipoise.nuggets import nugget_table
from equipoise_compendium import project
from equipoise_compendium.protocol import stated

pytestmark = pytest.mark.upstream


MIRROR = os.environ.get("EQUIPOISE_MIRROR", "")
PAPERS = Path(MIRROR).parent / "papers"
if not MIRROR or not PAPERS.is_dir():
    pytest.skip(
        "the papers' texts, which are not published here, are not beside the mirror",
        allow_module_level=True,
    )


def paper(number: str) -> str:
    """The text of a paper, by the number that its file begins with."""
    (path,) = PAPERS.glob(f"{number}_*.txt")
    return path.read_text(encoding="utf-8")


def figure_5() -> tuple[str, str]:
    """The transcripts of Bing and of Google, which the paper's text interleaves."""
    text = paper("000")
    text = text[text.index("##### M002") : text.index("Figure 5:")]
    opening, bing = (part for part in re.split(r"(?=##### M002)", text) if part)
    bing, left_out, rest = bing.partition("[A 452-word response")
    return bing, opening + left_out + rest


def nuggets_of(run: str, sets: dict[str, AttributeSet]) -> pd.DataFrame:
    """The committed nuggets of a run of M002, as text."""
    frame = pd.read_csv(project.data("conversations", "M002.csv"), dtype=str, keep_default_na=False)
    return frame.loc[frame["run"] == run, ["turn", "start", "end", "level", *sets]]


def test_every_word_count_of_the_published_bing_transcript_is_ours() -> None:
    """Reading rejects a ``wc=`` that the text contradicts."""
    sets = read_attributes(project.data("attributes", "fairweb_movies.yaml"))
    bing, _ = figure_5()
    lines = parse_transcripts(bing, "bing-1", sets)
    assert bing.count("wc=") == (lines["level"] != "").sum()
    counted = nugget_table(nugget_frame(lines, sets), sets)
    committed = nugget_table(nuggets_of("bing-1", sets).assign(run="bing-1", topic="M002"), sets)
    for name in ("turn", "start", "end", "level"):
        np.testing.assert_array_equal(getattr(counted, name), getattr(committed, name))
    for name, members in committed.memberships.items():
        np.testing.assert_allclose(counted.memberships[name], members)
    boundaries = pd.read_csv(project.data("conversations", "M002_turns.csv"))
    pd.testing.assert_frame_equal(
        turn_frame(lines),
        boundaries[boundaries["run"] == "bing-1"].reset_index(drop=True),
        check_dtype=False,
    )


def test_the_published_google_transcript_omits_words_that_its_counts_include() -> None:
    """Its first answer is omitted, and the second has fewer words than its counts say."""
    sets = read_attributes(project.data("attributes", "fairweb_movies.yaml"))
    _, google = figure_5()
    with pytest.raises(ValueError, match="wc= must be"):
        parse_transcripts(google, "google-1", sets)
    lines = parse_transcripts(re.sub(r"\nwc=[^\n]*", "", google), "google-1", sets)
    levels = nugget_frame(lines, sets)["level"]
    committed = nuggets_of("google-1", sets)["level"]
    assert levels[levels != "0"].tolist() == committed[committed != "0"].tolist()
    asked, answered = turn_frame(lines)["end"].to_numpy()[:2]
    assert answered - asked == 452  # as the figure says of itself


def test_every_position_of_the_published_org_run_is_ours() -> None:
    """The paper's text has one line per run, in which U: and S: are words of their own."""
    text = next(
        line
        for line in paper("003").splitlines()
        if line.startswith("<R112>") and line.endswith("</R112>")
    )
    positions = re.findall(r"WC=(\d+)-(\d+), L2", text)
    bare = re.sub(r"WC=\d+-\d+, L2, h=\d+ \(G\d\), s?he \(G\d\)?|</?R112>", "", text)
    words = bare.split()
    assert len(positions) == 5
    for start, end in positions:
        name_and_url = words[int(start) - 1 : int(end)]
        assert [word.startswith("https://") for word in name_and_url] == [False, False, True]


def test_quotes_of_chapter_5_are_the_thesis_s_words() -> None:
    text = re.sub(r"\*", "", " ".join(paper("001").split()))
    claims = stated("thesis")
    of_chapter = claims[claims.index.str.match(r"5\.|placebo")]
    assert len(of_chapter) > 20
    for name, quote in of_chapter["quote"].items():
        # signs and formulas are set in several ways; "<" begins no tag here
        bare, whole = letters(quote.replace("< ", "")), letters(text.replace("< ", ""))
        if name in ("5.6-confident", "5.17-examples"):
            assert bare[-80:] in whole, name  # a table interrupts the sentence
            continue
        assert quote in text or bare in whole, name


def letters(text: str) -> str:
    """Letters and digits alone: subscripts and formulas are set in several ways."""
    bare = re.sub(r"<[^>]*>|\\(?:text|in|mathrm)", "", text.replace("\\alpha", "α"))
    return re.sub(r"[^A-Za-z0-9α]", "", bare)


def test_quotes_of_chapters_2_and_3_are_the_thesis_s_words() -> None:
    # Tables, with tabs, and their captions stand in the middle of sentences.
    paragraphs = paper("001").split("\n")
    running = [line for line in paragraphs if not re.search(r"\t|^Table [\d.]+: ", line)]
    text = letters(" ".join(running))
    claims = stated("thesis")
    of_chapters = claims[claims.index.str.match(r"[23]\.")]
    quotes = of_chapters["quote"][of_chapters["quote"] != ""]
    assert len(quotes) > 40
    for name, quote in quotes.items():
        for part in quote.split("[…]"):
            if name == "2.1-cross-encoder-values":
                continue  # rows of a table; its cells are compared with table-2.1.csv
            assert letters(part.replace("∈", "")) in text, name


def test_prompts_are_those_that_the_thesis_prints() -> None:
    text = " ".join(paper("001").replace("**", "").split())
    folder = project.root() / "data" / "studies" / "satisfaction"
    for name in ("few-shot", "counterfactual"):
        assert " ".join((folder / f"{name}-prompt.txt").read_text().split()) in text


@pytest.mark.parametrize(
    ("name", "number"), [("gfrc", "000"), ("permutations", "002"), ("gfrc2", "003")]
)
def test_quotes_are_words_of_their_paper(name: str, number: str) -> None:
    """Formulas, quotation marks and breaks of pages are garbled in the texts, so not every word."""
    text = plain_words(paper(number))
    for claim, quote in stated(name)["quote"].items():
        words = plain_words(quote).split()
        runs = [" ".join(words[place : place + 3]) for place in range(max(1, len(words) - 2))]
        stands = [run in text for run in runs if run]
        assert not stands or sum(stands) >= 0.5 * len(stands), claim


def plain_words(text: str) -> str:
    joined = re.sub(r"-\s*\n", "-", text)
    return " ".join(re.findall(r"[a-z0-9%.]+", joined.lower()))
