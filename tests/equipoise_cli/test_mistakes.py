"""Common mistakes end with status 2 and one sentence, which names the file or the option."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import called

NUGGETS = (
    "run,topic,turn,start,end,level,SIZE,KIND\n"
    "a,T1,1,3,4,2,0 1,1 0\n"
    "a,T1,2,8,9,1,1/2 1/2,0 1\n"
    "b,T1,1,5,5,2,1 0,1 0\n"
)
SETS = (
    "SIZE: {kind: ordinal, groups: [small, large], target: uniform}\n"
    "KIND: {kind: nominal, groups: [x, y], target: [2, 1]}\n"
)
FILES = {
    "n.csv": NUGGETS,
    "sets.yaml": SETS,
    "run": "t1 Q0 a 1 3 r1\nt1 Q0 x 2 2 r1\nt2 Q0 b 1 1 r1\n",
    "qrels": "t1 0 a 2\nt1 0 b 1\nt2 0 b 1\n",
    "members": "t1 a 1 0\nt2 b 0 1\n",
    "target": "0.5\n0.5\n",
    "people.csv": "document,gender\na,female\nb,male\n",
}
GFRC = ["score", "gfrc", "n.csv", "--attributes", "sets.yaml"]
GFRC2 = ["score", "gfrc2", "n.csv", "--attributes", "sets.yaml"]
GFR = ["score", "gfr", "--run", "run", "--qrels", "qrels"]
SHARES = [*GFR, "--membership", "S=members", "--target", "S=target"]
PEOPLE = [*GFR, "--membership", "people.csv"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("words", [GFRC, GFRC2, SHARES, PEOPLE])
@pytest.mark.usefixtures("files")
def test_the_files_are_good(words: list[str]) -> None:
    result = called(*words)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("n.csv", lambda text: "\ufeff" + text.replace("\n", "\r\n\r\n")),
        ("run", lambda text: text.replace(" ", "\t")),
        ("qrels", lambda text: re.sub(r" 0 (\w) ", r" \1 L", text)),
    ],
)
def test_other_forms_are_read_alike(name: str, change: Callable[[str], str], files: Path) -> None:
    expected = [called(*words).stdout for words in (GFRC, SHARES)]
    (files / name).write_text(change(FILES[name]), newline="")
    assert [called(*words).stdout for words in (GFRC, SHARES)] == expected


def replaced(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return change


MISTAKES: list[tuple[list[str], str, Callable[[str], str], str]] = [
    # files
    (GFRC, "n.csv", lambda _: "", "n.csv: must be a table with a header, got an empty file"),
    (GFRC, "n.csv", lambda text: text.split("\n")[0], "got a header alone"),
    (
        GFRC,
        "n.csv",
        replaced("run,topic", "run;topic"),
        "line 2: must be 7 fields, as in the header",
    ),
    (GFRC, "n.csv", lambda text: text.replace(",", ";"), "columns between commas, got semicolons"),
    (GFRC, "n.csv", replaced(",SIZE,", ",AGE,"), 'line 1, column "SIZE": must be a column of'),
    (GFRC, "n.csv", replaced("topic,turn", "turn,turn"), 'column "turn": must be named once'),
    (GFRC, "n.csv", replaced("1 0\n", "1 0,more\n"), "line 2: must be 8 fields, as in the header"),
    (GFRC, "n.csv", replaced(",1 0\n", "\n"), "line 2: must be 8 fields, as in the header, got 7"),
    # nuggets
    (GFRC, "n.csv", replaced("a,T1,1", ",T1,1"), "line 2, column \"run\": must be an id, got ''"),
    (GFRC, "n.csv", replaced("2,8,9", "1,3,4"), "must differ from the rows above"),
    (GFRC, "n.csv", replaced("3,4,2", "3,four,2"), '"end": must be a whole number of at least 1'),
    (GFRC, "n.csv", replaced("3,4,2", "3,4,-2"), '"level": must be a whole number of at least 0'),
    (GFRC, "n.csv", replaced("3,4,2", "3.5,4,2"), '"start": must be a whole number'),
    (GFRC, "n.csv", replaced("3,4,2", "3,,2"), '"start": must be given together with end'),
    (GFRC, "n.csv", replaced("3,4,2", "5,4,2"), "\"start\": must not be after end, got '5'"),
    (GFRC, "n.csv", replaced("2,8,9", "1,4,9"), "which it must not overlap"),
    (GFRC, "n.csv", replaced("2,8,9", "1,1,2"), "must be after words 3 to 4 of turn 1"),
    (GFRC, "n.csv", replaced("0 1,", "0 1 0,"), '"SIZE": must be 2 probabilities that sum to 1'),
    (GFRC, "n.csv", replaced("0 1,", "-1 2,"), '"SIZE": must be 2 probabilities that sum to 1'),
    (GFRC, "n.csv", replaced("0 1,", "0.5 0.4,"), '"SIZE": must be 2 probabilities that sum to 1'),
    (GFRC, "n.csv", replaced("0 1,", ","), '"SIZE": must be 2 probabilities'),
    (GFRC, "n.csv", replaced("3,4,2", "3,4,3"), "gains must be for every level, got [1, 2]"),
    # attribute sets
    (GFRC, "sets.yaml", lambda text: text + text, "line 3: must be YAML, got the key 'SIZE' twice"),
    (GFRC, "sets.yaml", replaced("kind:", "sort:"), "the keys must be kind, groups and target"),
    (GFRC, "sets.yaml", replaced("ordinal", "ordnal"), "kind must be 'ordinal' or 'nominal'"),
    (GFRC, "sets.yaml", replaced("[2, 1]", "[2]"), "target must have 2 numbers, got 1"),
    (GFRC, "sets.yaml", replaced("[x, y]", "[x]"), "groups must be two or more different names"),
    # runs, judgements, memberships
    (SHARES, "run", replaced(" r1\n", "\n"), "run, line 1: must be 6 columns, topic Q0 document"),
    (SHARES, "run", replaced("3 r1", "x r1"), 'line 1, column "score": must be a finite number'),
    (SHARES, "run", replaced("3 r1", "nan r1"), 'line 1, column "score": must be a finite number'),
    (SHARES, "run", replaced("Q0 x", "Q0 a"), '"document": must be once in the ranking of a topic'),
    (SHARES, "run", replaced("2 r1", "2 r2"), "column \"tag\": must be 'r1', as in the first line"),
    (SHARES, "qrels", lambda _: FILES["run"], "got a run"),
    (SHARES, "qrels", replaced("a 2", "a high"), '"level": must be a level such as L2 or 2'),
    (SHARES, "qrels", replaced("0 b", "0 a"), '"document": must be once in the judgements'),
    (PEOPLE, "qrels", lambda text: text.replace("t", "q"), "a ranking for at least one"),
    (SHARES, "qrels", lambda text: text.replace("t", "q"), "no topic of the qrels, such as q1"),
    (SHARES, "qrels", lambda text: re.sub(" ([ab]) ", r" \1\1 ", text), "a judgement for at least"),
    (SHARES, "members", lambda text: re.sub(" ([ab]) ", r" \1\1 ", text), "a membership in S for"),
    (SHARES, "members", replaced("1 0", "1 1"), '"S": must be 2 probabilities that sum to 1'),
    (SHARES, "members", replaced("t2 b", "t1 a"), "must be once in the memberships of a topic"),
    (SHARES, "target", lambda text: text + "1\n", "members, line 1: must be 5 columns"),
    (PEOPLE, "people.csv", lambda _: "document,n\na,1\nb,2\n", "a column of names of groups"),
]


@pytest.mark.parametrize(("words", "name", "change", "message"), MISTAKES)
def test_a_mistake_in_a_file_is_one_sentence(
    words: list[str], name: str, change: Callable[[str], str], message: str, files: Path
) -> None:
    (files / name).write_text(change(FILES[name]))
    result = called(*words, "-o", "out.csv")
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    notes = ("coverage: ", "groups: ")
    (sentence,) = [line for line in result.stderr.splitlines() if not line.startswith(notes)]
    assert sentence.startswith("Error: ")
    assert not (files / "out.csv").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*GFRC, "--patience", "0"], "patience must be greater than 1, got '0'"),
        ([*GFRC, "--patience", "nan"], "patience must be a finite number, got 'nan'"),
        ([*GFRC, "--ordinal", "emd"], "ordinal must be 'rnod', 'nmd', 'jsd' or 'nvd', got 'emd'"),
        ([*GFRC, "--gains", "1:2"], "gains[1] must be less than or equal to 1, got '2'"),
        ([*GFRC, "--gains", "1"], "gains must be written name:number,name:number"),
        ([*GFRC, "--weights", "AGE:1"], "weights must be for each of SIZE, KIND, got AGE"),
        ([*GFRC, "--attribute", "AGE"], "--attribute must be one of SIZE, KIND, the sets of"),
        ([*GFRC, "--level", "0.9"], "--level must be given with --intervals"),
        ([*SHARES, "--cutoff", "0"], "cutoff must be greater than or equal to 1, got '0'"),
        ([*SHARES, "--kind", "S=odd"], "--kind must be ordinal or nominal, got odd"),
        ([*SHARES, "--kind", "AGE=ordinal"], "needs a --membership of its NAME, got none for AGE"),
        ([*GFR, "--membership", "none"], "none: no such file or directory"),
        ([*GFR, "--membership", "members"], "shares of groups must be given with a name"),
    ],
)
@pytest.mark.usefixtures("files")
def test_a_wrong_option_is_one_sentence(words: list[str], message: str) -> None:
    result = called(*words)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_a_file_that_is_missing_or_no_text(files: Path) -> None:
    (files / "n.csv").write_bytes(NUGGETS.encode("utf-16"))
    assert "n.csv: must be UTF-8 text, got UTF-16" in called(*GFRC).stderr
    (files / "n.csv").unlink()
    result = called(*GFRC)
    assert (result.exit_code, result.stderr) == (2, "Error: n.csv: no such file or directory\n")
