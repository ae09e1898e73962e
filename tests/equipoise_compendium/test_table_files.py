"""Printed tables read from the files of a paper, and what is said of those that are typed in."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from commands import called
from equipoise_compendium import begin, project, table_files, typed
from equipoise_compendium.printed import Printed, compare, printed_table

LATEX = r"""
\begin{table}\caption{Two % a comment with \begin{tabular}
measures}
\begin{tabular}{@{}l|r@{\,}S[table-format=1.2]c@{}}
\toprule
 & \multicolumn{2}{c}{MS~MARCO} & \\ \cmidrule(lr){2-3}
Model & RR & \begin{tabular}{c}nDCG\\@10\end{tabular} & $\Delta$ [\%] \\
\midrule
\multirow{2}{*}{BM25 \cite{robertson1995}} & \textbf{.187} & 0.50$^{\dagger}$ & $-$1.20 \\
 & 0.180 & {\bf 0.49} & $+$0.5 \\[2pt]
R\&D\_x \footnotemark & --- & \phantom{0}7.10 & 1{,}234 \\
\bottomrule
\end{tabular}\end{table}
\begin{tabularx}{\textwidth}{lX} a & \makecell{b\\c} \\ \end{tabularx}
"""
HTML = """
<table><tr><td><table>
<thead><tr><th rowspan="2">Model</th><th colspan="2">MS&nbsp;MARCO</th></tr>
<tr><th>RR</th><th>nDCG</th></tr></thead>
<tr><td rowspan=2>BM25</td><td><b>.187</b></td><td>0.50<sup>†</sup></td></tr>
<tr><td>−0.180</td><td>0.49<script>alert(1)</script></td></tr>
</table></td></tr></table>
"""


def rows_of(path: Path, text: str, header: int = 2, number: int = 0) -> list[list[str]]:
    path.write_text(text, encoding="utf-8")
    return table_files.with_one_header(table_files.read_tables(path)[number], header)


def test_latex_gives_every_cell_as_it_is_printed(tmp_path: Path) -> None:
    assert rows_of(tmp_path / "a.tex", LATEX) == [
        ["Model", "MS MARCO RR", "MS MARCO nDCG @10", "[%]"],
        ["BM25", ".187", "0.50†", "-1.20"],
        ["BM25", "0.180", "0.49", "+0.5"],
        ["R&D_x", "—", "7.10", "1,234"],
    ]
    assert table_files.read_tables(tmp_path / "a.tex")[1] == [["a", "b c"]]


def test_html_gives_every_cell_as_it_is_printed(tmp_path: Path) -> None:
    assert rows_of(tmp_path / "a.html", HTML) == [
        ["Model", "MS MARCO RR", "MS MARCO nDCG"],
        ["BM25", ".187", "0.50†"],
        ["BM25", "-0.180", "0.49"],
    ]


def test_markdown_gives_every_cell_as_it_is_printed(tmp_path: Path) -> None:
    text = (
        "Words\n\n| Run | MRR |\n|:---:|----:|\n| BM25_C | -- |\n| a\\|b | **79.90**† |\n\nMore\n"
    )
    expected = [["Run", "MRR"], ["BM25_C", "--"], ["a|b", "79.90†"]]
    assert rows_of(tmp_path / "README.md", text, header=1) == expected


def test_zeros_at_the_end_of_a_number_stay(tmp_path: Path) -> None:
    for name, text in (
        ("a.csv", "m,RR\nx,0.50\ny,1.000\n"),
        ("a.tsv", "m\tRR\nx\t0.50\ny\t1.000\n"),
    ):
        assert rows_of(tmp_path / name, text, header=1) == [
            ["m", "RR"],
            ["x", "0.50"],
            ["y", "1.000"],
        ]
    decimals = [Printed.parse(text).decimals for text in (".187", "0.50†", "-1.20", "1,234")]
    assert decimals == [3, 2, 2, 0]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.docx", "x", r"tables are read from \.tex"),
        ("a.tex", r"\section{None}", "found no table"),
        ("a.html", "<p>None</p>", "found no table, wanted <table>"),
        ("a.csv", "", "found no table"),
        ("a.csv", "only,a,header\n", "1 rows found, wanted 1 of the header and others"),
    ],
)
def test_a_file_without_a_table_is_refused(tmp_path: Path, name: str, text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        rows_of(tmp_path / name, text, header=1)


def test_hostile_files_end_in_a_sentence_or_in_plain_cells(tmp_path: Path) -> None:
    (tmp_path / "bytes.csv").write_bytes(b"a,b\n\xff,1\n")
    with pytest.raises(ValueError, match="byte 4 is no UTF-8"):
        table_files.read_tables(tmp_path / "bytes.csv")
    spans = "<table><tr><td colspan=999999999>a</td><td rowspan=x>b</td></tr></table>"
    (tmp_path / "spans.html").write_text(spans)
    assert table_files.read_tables(tmp_path / "spans.html") == [[["a", "b"]]]
    (tmp_path / "open.tex").write_text(r"\begin{tabular}{l a & {b \\ c & d} \\ \end{tabular}")
    assert len(table_files.read_tables(tmp_path / "spans.html")) == 1
    (tmp_path / "many.tex").write_text(r"\begin{tabular}" * 20_000)
    with pytest.raises(ValueError, match="found no table"):
        table_files.read_tables(tmp_path / "many.tex")


# --- what is typed in -----------------------------------------------------------------------------

TYPED = """\
run,RR,gain,n
a,0.187,+0.01,10
b,0.19,+0.02,11
c,0.2O1,0.03,12
d,0.205,-0.04,13
e, 0.300,+0.05,14
f,1,+0.06,15
g,0.299,+0.07,l6
h,0.298,+0.08,17
i,0.297,+0.09,18
j,0.296,+0.10,19
"""


@pytest.fixture
def compendium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    begin.make_compendium(tmp_path / "mine", "Mine")
    monkeypatch.setattr(project, "root", lambda: tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    return tmp_path / "mine"


def put(compendium: Path, text: str) -> None:
    (compendium / "data" / "published" / "anscombe" / "table-1.csv").write_text(text)


def test_shape_precision_signs_and_letters_are_looked_at(compendium: Path) -> None:
    put(compendium, TYPED)
    assert list(map(str, typed.remarks("anscombe/table-1"))) == [
        "look again: line 3, RR: 0.19 has two decimals, most of the column 3",
        "fault: line 4, RR: '0.2O1' is no number; is 0.201 printed?",
        "look again: line 4, gain: 0.03 has no sign, most of the column have one",
        "fault: line 6, RR: blanks around ' 0.300'",
        "look again: line 7, RR: 1 has no decimals, most of the column 3; a whole number is "
        "compared as it stands, so type its zeros if printed",
        "fault: line 8, n: 'l6' is no number; is 16 printed?",
    ]
    put(compendium, "run,RR,RR,\na,1,2,3\nb,1,2\na,1,2,3\n")
    assert list(map(str, typed.remarks("anscombe/table-1"))) == [
        "fault: line 1, RR: the column stands 2 times",
        "fault: line 1: a column without a name",
        "fault: line 3: 3 cells found, 4 wanted, as in the header",
        "fault: line 4: the row stands above already",
    ]
    assert typed.faults_of_all()[0].startswith("anscombe/table-1, fault: line 1, RR")


def test_the_tables_of_this_repository_are_well_typed() -> None:
    assert len(typed.typed_artefacts()) > 40
    assert typed.faults_of_all() == []


def test_the_command_types_in_looks_and_draws(compendium: Path, tmp_path: Path) -> None:
    (tmp_path / "a.tex").write_text(LATEX, encoding="utf-8")
    words = ["typed", "anscombe/table-1", "--from", tmp_path / "a.tex", "--header", "2"]
    refused = called(*words)
    assert refused.exit_code == 2
    assert "--force replaces it" in refused.output
    result = called(*words, "--force", "--picture", tmp_path / "typed.svg")
    assert result.exit_code == 0, result.output
    assert "3 rows of 4 columns from table 1 of 2" in result.output
    assert "unchecked" not in result.output
    assert printed_table("anscombe/table-1")["MS MARCO nDCG @10"].tolist() == [
        "0.50†",
        "0.49",
        "7.10",
    ]
    drawn = (tmp_path / "typed.svg").read_text(encoding="utf-8")
    assert "anscombe, table-1, pp. 17-21: What a regression program prints" in drawn
    put(compendium, TYPED)
    assert called("typed").exit_code == 1
    assert called("typed", "--confirm").exit_code == 2


class _Document:
    """What pdfplumber makes of a file of two pages."""

    def __init__(self, _: Path) -> None:
        empty = SimpleNamespace(extract_tables=lambda _=None: [])
        cells = [["run", "RR"], ["a", "0.50"], ["b", None], ["c", "−0.10"]]
        full = SimpleNamespace(extract_tables=lambda settings=None: [cells] if settings else [])
        self.pages = [empty, full]

    def __enter__(self) -> _Document:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""


@pytest.mark.usefixtures("compendium")
def test_what_is_read_from_a_pdf_is_unchecked_until_a_person_confirms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from equipoise_compendium.report import Report

    monkeypatch.setitem(sys.modules, "pdfplumber", SimpleNamespace(open=_Document))
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7")
    words = ["typed", "anscombe/table-1", "--from", tmp_path / "a.pdf", "--page", "2", "--force"]
    result = called(*words)
    assert result.exit_code == 0, result.output
    assert "unchecked, read from a.pdf: hold it against the page, then --confirm" in result.output
    assert printed_table("anscombe/table-1")["RR"].tolist() == ["0.50", "", "-0.10"]
    assert typed.unchecked("anscombe/table-1") == "a.pdf"

    ours = printed_table("anscombe/table-1")
    ours["RR"] = [0.5, 0.1, -0.1]
    assert compare(ours, "anscombe/table-1", ["run"]).cells == 2
    report = Report("anscombe")
    report.table("anscombe/table-1", ours, keys=["run"])
    note = report._records["anscombe/table-1"]["note"]
    assert note == "unchecked: the printed cells were read from a.pdf by a program, not by a person"

    assert called("typed", "anscombe/table-1", "--confirm").exit_code == 0
    assert typed.unchecked("anscombe/table-1") == ""
    assert called("typed", "anscombe/table-1", "--confirm").exit_code == 2
    too_far = called(*words[:-2], "3", "--force")
    assert "page 3 wanted, pages 1 to 2 found" in " ".join(too_far.output.split())


def test_without_pdfplumber_a_pdf_is_refused_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pdfplumber", None)
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7")
    with pytest.raises(ValueError, match="python -m pip install pdfplumber, or type the cells in"):
        table_files.read_tables(tmp_path / "a.pdf")
