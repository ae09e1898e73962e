"""Guards text from data: it stays text on a terminal, in Markdown, HTML and a spreadsheet."""

import csv
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from commands import called
from equipoise.problems import InputError, Problem, plain
from equipoise_cli import main
from equipoise_compendium import plots, project, shown
from equipoise_compendium.report import Report
from equipoise_compendium.site import markup
from equipoise_compendium.writing import harmless, write_csv
from good_files import TEXTS, lay

HIDDEN = [
    "\x1b[31m",
    "\x1b]0;owned\x07",
    "\x08",
    "\x7f",
    "\x9b2J",
    "\u202e",
    "\u2066",
    "\u200f",
    "\u061c",
    "\u2028",
]
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


@given(st.text(alphabet=st.one_of(st.sampled_from("".join(HIDDEN)), st.characters(codec=None))))
def test_what_is_hidden_is_shown_and_all_else_stays(text: str) -> None:
    assert OBEYED.search(plain(text)) is None
    assert plain(plain(text)) == plain(text)
    visible = "".join(letter for letter in text if not OBEYED.match(letter))
    assert plain(visible) == visible  # umlauts, joiners and emoji too


@pytest.mark.parametrize("hidden", HIDDEN)
def test_no_notebook_page_or_message_obeys(hidden: str) -> None:
    text = f"a{hidden}b"
    escaped = f"a{hidden.encode('unicode_escape').decode()}b"
    assert OBEYED.search(shown.markdown_cell(text)) is None
    made = shown.show_table(text, pd.DataFrame({text: [text]}), None, 4)
    assert all(OBEYED.search(content) is None for content in made.formats.values())
    assert escaped in made.formats["text/html"]
    assert OBEYED.search(markup.clean(f"<p title='{text}'>{text}</p>")) is None
    assert escaped in markup.prose(text)
    assert OBEYED.search(plots.literal(text)) is None
    told = str(InputError([Problem(text, 1, text, text + "\nerror: forged", text)]))
    assert OBEYED.search(told) is None
    assert "\n" not in told


def test_a_terminal_shows_scores_escaped_and_a_pipe_has_them_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("nuggets.csv").write_text(TEXTS["nuggets.csv"].replace("\na,", "\n\x1b[31ma,"))
    words = ["score", "gfrc", "nuggets.csv", "--attributes", "sets.yaml"]
    assert "\n\x1b[31ma,T1" in called(*words).stdout
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
    shown_there = CliRunner().invoke(main, words, color=True).stdout
    assert "\n\\x1b[31ma,T1" in shown_there
    assert OBEYED.search(shown_there) is None


# --- links ----------------------------------------------------------------------------------------


class _Links(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.found += [value or "" for name, value in attrs if name in ("href", "src")]


@pytest.mark.parametrize(
    "link",
    [
        *(
            "data:text/html,a",
            " data:text/html,a",
            "\tdata:text/html,a",
            "da\nta:text/html,a",
            "DATA:text/html,a",
        ),
        *(
            "\x01data:text/html,a",
            "&#100;ata:text/html,a",
            "data&colon;text/html,a",
            "//host/share",
            "\\\\host\\share",
        ),
        *(
            "/\\host/share",
            "\\/host",
            " //host",
            "/\t/host",
            "\n\\\\host",
            "file:///etc/passwd",
            "smb://host/share",
        ),
        *("javascript:alert(1)", "java\tscript:alert(1)", "vbscript:a", "blob:a", "view-source:a"),
    ],
)
def test_a_link_that_leads_to_code_or_a_share_is_dropped(link: str) -> None:
    for page in (
        markup.clean(f'<a href="{link}">x</a><img src="{link}">'),
        markup.prose(f"[x]({link}) ![y](<{link}>)"),
    ):
        assert all(
            not value or re.match(r"/?[\w%][\w./%-]*\Z", value) for value in _Links(str(page)).found
        ), page


def test_a_link_to_a_page_stays() -> None:
    kept = [
        "https://a.org/x?y=1#z",
        "http://a.org",
        "mailto:a@b.org",
        "page.html",
        "../a/b.csv",
        "#part",
        "/from/top",
    ]
    page = markup.clean("".join(f'<a href="{link}">x</a>' for link in kept))
    assert _Links(page).found == kept


# --- spreadsheets ---------------------------------------------------------------------------------

RUN = [
    "=1+1",
    "=cmd|' /C calc'!A0",
    " =A1",
    "@SUM(A1)",
    "+A1",
    "-A1",
    "- x",
    "-2+3+cmd|' /C calc'!A0",
    "+1+SUM(A1)",
    "\t=A1",
]
NOT_RUN = [
    "",
    "-",
    "+",
    "=",
    "@",
    "-0.5",
    "+1e-3",
    "-0.068 to -0.042",
    "a=b",
    "a-b",
    "0",
    "+/- 0.3",
    "-1 %",
    "x",
    "- ",
    "-.5",
]


@pytest.mark.parametrize("text", RUN)
def test_what_a_spreadsheet_would_run_stands_behind_an_apostrophe(text: str) -> None:
    assert harmless(text) == "'" + text
    stream = io.StringIO()
    write_csv(pd.DataFrame({text: [text], "value": [-0.5]}), stream, for_spreadsheets=True)
    assert list(csv.reader(io.StringIO(stream.getvalue()))) == [
        ["'" + text, "value"],
        ["'" + text, "-0.5"],
    ]


def test_all_else_stays_and_so_do_scores() -> None:
    assert [harmless(text) for text in NOT_RUN] == NOT_RUN
    assert harmless(-0.5) == -0.5
    stream = io.StringIO()
    write_csv(pd.DataFrame({"run": RUN}), stream)  # a table to read again
    assert [row[0] for row in csv.reader(io.StringIO(stream.getvalue()))][1:] == RUN


def test_reports_are_made_for_spreadsheets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQUIPOISE_REPORT_FOLDER", str(tmp_path))
    Report("hostile").table("scores", pd.DataFrame({"run": ["=A1", "b"], "value": [1.0, -1.0]}))
    assert (tmp_path / "tables" / "scores.csv").read_text() == "run,value\n'=A1,1\nb,-1\n"


def test_no_committed_report_needed_it() -> None:
    """So their bytes are what they were."""
    for path in (project.root() / "reports").rglob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            assert all(harmless(cell) == cell for row in csv.reader(file) for cell in row), path


# --- folders --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["../README.md", "attributes/../../README.md", "/etc/passwd", "..", "", "a\0b", "x" * 5000],
)
def test_data_stays_in_its_folder(name: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"out of the folder data|no file data/"):
        project.data(name)


def test_words_keep_their_lines_and_are_no_markup() -> None:
    words = shown.show_words(
        "A <b>prompt</b>", [("USER", "one\n<script>two</script>\n\n| *three*")]
    ).formats
    assert "<td>one<br>&lt;script&gt;two&lt;/script&gt;<br><br>| *three*</td>" in words["text/html"]
    assert "A &lt;b&gt;prompt&lt;/b&gt;" in words["text/html"]
    assert "<script>" not in words["text/markdown"]
    assert r"\| \*three\*" in words["text/markdown"]
