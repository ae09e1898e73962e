"""Guards the CAsT loaders: all problems of a file at once; real files give the paper's counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from equipoise.files import read_columns
from equipoise.orders.class_structures import ClassStructure
from equipoise.orders.conversations import conversations, with_dependencies
from equipoise.problems import InputError
from equipoise_compendium import project
from equipoise_compendium.printed import printed_table
from equipoise_studies.permutations import data
from equipoise_studies.permutations import upstream as cast
from equipoise_studies.permutations.figures import utterance_blocks


def problems(reader: Callable[[Path], pd.DataFrame], path: Path, content: str) -> list[str]:
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        reader(path)
    return [str(problem).removeprefix(str(path)) for problem in caught.value.problems]


def test_every_problem_of_the_classes_is_reported(tmp_path: Path) -> None:
    content = "31_1\tWhat?\tSE\n31_2\tWhy?\n31-3\tHow?\tSE\n31_4\tWho?\tXX\n\n31_1\tWhat?\tSE\n"
    assert problems(cast.read_classes, tmp_path / "classes.tsv", content) == [
        ", line 2: found 2 fields, wanted 3: query, text, class",
        ", line 3, column query: found '31-3', wanted a topic and a turn, such as 31_4",
        ", line 4, column class: found 'XX', wanted one of SE, FT, PT",
        ", line 6, column query: found '31_1' again, as on line 1, wanted each once",
    ]


def test_every_problem_of_the_judgements_is_reported(tmp_path: Path) -> None:
    content = "31_1 Q0 d1 2\n31_1 Q0 d2 high\n31_1 Q0 d1 0\nx Q0 d3 1\n31_2 d4\n"
    assert problems(cast.read_qrels, tmp_path / "qrels.txt", content) == [
        ", line 2, column level: found 'high', wanted a level such as L2 or 2",
        ", line 3, column document: found d1 again for topic 31_1, wanted "
        "each document once in the judgements of a topic",
        ", line 5: found 2 columns, wanted 4, as in the lines before",
    ]
    assert problems(cast.read_qrels, tmp_path / "qrels.txt", "31_1 Q0 d1 2\nx Q0 d3 1\n") == [
        ", column query: found 'x', wanted a topic and a turn, such as 31_4"
    ]


def test_every_problem_of_the_passages_is_reported(tmp_path: Path) -> None:
    content = (
        "#c\t#q\t#p\t#s\n\t31_1\tMARCO_1\t\n\t31_1\tMARCO_2\n"
        "\tx\tCAR_1\tText.\n\t31_1\tNEWS_1\tText.\n"
    )
    assert problems(cast.read_passages, tmp_path / "cast.support", content) == [
        ", line 2, column text: found no text for MARCO_1, wanted at least one span",
        ", line 3: found 3 fields, wanted at least 4: context, query, passage, text",
        ", line 4, column query: found 'x', wanted a topic and a turn, such as 31_4",
        ", line 5, column passage: found 'NEWS_1', "
        "wanted an id that starts with CAR or MARCO or WAPO",
    ]


@pytest.mark.parametrize("reader", [cast.read_classes, cast.read_qrels, cast.read_resolved])
def test_a_file_that_is_not_there_or_empty_is_a_problem(
    reader: Callable[[Path], pd.DataFrame], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="wanted a readable file"):
        reader(tmp_path / "nothing.txt")
    assert problems(reader, tmp_path / "empty.txt", "\n") == [
        ": found an empty file, wanted some content"
    ]


def test_conversations_that_cannot_be_made_are_all_named() -> None:
    topics = pd.DataFrame(
        {
            "query": ["1_1", "1_2", "2_1", "2_2"],
            "topic": ["1", "1", "2", "2"],
            "turn": [1, 2, 1, 2],
            "text": "What?",
        }
    )
    classes = pd.DataFrame({"query": ["1_1", "2_2"], "text": "What?", "class": ["SE", "FT"]})
    qrels = pd.DataFrame({"query": ["1_1", "1_2", "2_2", "9_1"], "document": "d", "grade": 1})
    with pytest.raises(ValueError, match="judged turn 9_1 has no utterance") as caught:
        cast.judged_conversations(topics, classes, qrels)
    assert "judged turn 1_2 has no class" in str(caught.value)
    assert "topic 2 has no first utterance: turn 1 is not judged, turn 2 is" in str(caught.value)
    table = topics.assign(**{"class": ["FT", "SE", "SE", "??"]})
    with pytest.raises(
        ValueError,
        match=r"topic 1: the first utterance must be .*; topic 2: unknown utterance class",
    ):
        conversations(table)


@pytest.fixture(scope="module")
def judged() -> pd.DataFrame:
    return data.read_utterances()


def test_orders_of_the_real_conversations_agree_with_listing_them(judged: pd.DataFrame) -> None:
    """Issue 4: brute force for every conversation of up to 40,320 orders, which is all of them."""
    made = conversations(judged)
    blocks = utterance_blocks(judged, made)
    assert len(made) == 20
    for conversation in made:
        part = blocks[blocks["topic"] == conversation.topic]
        turns = [int(query.partition("_")[2]) for query in conversation.queries]
        members = [[turns.index(turn) for turn in one["turn"]] for _, one in part.groupby("block")]
        behind = [
            [(head, *rest) for rest in itertools.permutations(followers)]
            for head, *followers in members
        ]
        listed = np.array(
            [
                [*opening, *itertools.chain.from_iterable(chosen)]
                for opening in behind[0]
                for line in itertools.permutations(behind[1:])
                for chosen in itertools.product(*line)
            ]
        )
        structure = conversation.structure
        assert structure.count == len(listed)
        np.testing.assert_array_equal(np.sort(structure.rank(listed)), np.arange(len(listed)))
        np.testing.assert_array_equal(structure.orders(), listed[np.lexsort(listed.T[::-1])])
        adjacency = np.zeros((structure.size, structure.size))
        np.add.at(adjacency, (listed[:, :-1], listed[:, 1:]), 1 / len(listed))
        np.testing.assert_allclose(structure.adjacency(), adjacency, rtol=0, atol=1e-9)


def test_the_file_of_dependencies_is_the_classes_and_its_orders_follow_the_hook_formula(
    judged: pd.DataFrame,
) -> None:
    """Linear extensions of a forest: n! over the product of the sizes of its subtrees (Knuth)."""
    made = conversations(judged)
    file = read_columns(
        project.data("conversations", "cast2019_dependencies.csv"), ["query", "depends_on"]
    )
    blocks = [one.structure.blocks for one in made if isinstance(one.structure, ClassStructure)]
    expected = {
        (one.queries[follower], one.queries[head])
        for one, parts in zip(made, blocks, strict=True)
        for head, *followers in parts
        for follower in followers
    }
    assert {*file.itertuples(index=False, name=None)} == expected
    for one, parts in zip(with_dependencies(made, file), blocks, strict=True):
        hooks = math.prod(len(part) for part in parts[1:])
        assert one.structure.count == math.factorial(one.structure.size - 1) // hooks


def test_table_1_differs_from_the_printed_counts_only_where_that_is_explained(
    judged: pd.DataFrame,
) -> None:
    printed = (
        printed_table("permutations/table-1").set_index("Conv. id")["unique perm."].astype(int)
    )
    counts = pd.Series({made.topic: made.structure.count for made in conversations(judged)})
    assert sorted(counts.index) == sorted(printed.index)
    assert printed[printed > counts].sub(counts[printed > counts]).unique().tolist() == [1]
    explained = pd.read_csv(
        project.data("published", "permutations", "explanations.csv"), dtype=str
    )
    assert set(printed[printed != counts].index) == set(
        explained.query("artefact == 'permutations/table-1'")["row"]
    )
