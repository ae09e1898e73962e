"""Guards the table of measures: complete, drawn from the code, and true of it on random inputs."""

import inspect
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import called
from equipoise import catalogue, declared, divergences, options
from equipoise.measures import gfrc
from equipoise_compendium import project

MEASURES = catalogue.MEASURES
BY_NAME = {measure.name: measure for measure in MEASURES}


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
def test_a_measure_says_what_the_code_says(measure: declared.Measure) -> None:
    assert measure.meaning in " ".join(
        (inspect.getdoc(measure.function) or "").replace("`", "").split()
    )
    assert measure.where
    assert measure.formula.count("{") - measure.formula.count(r"\{") == measure.formula.count(
        "}"
    ) - measure.formula.count(r"\}")
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(measure.function).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    assert [option.name for option in measure.options] == list(defaults)
    for option in measure.options:
        if option.choices and isinstance(defaults[option.name], str):
            assert defaults[option.name] in option.choices.split(", ")


def test_names_anchors_and_sources_are_in_order() -> None:
    assert len({measure.anchor for measure in MEASURES}) == len(BY_NAME) == len(MEASURES)
    known = catalogue.references()
    assert {key for measure in MEASURES for key in measure.sources} <= set(known)
    for key, entry in known.items():
        assert re.match(rf"@\w+\{{{key},\n(  \w+ = \{{.+\}},\n)+\}}$", entry), key
        assert {"author", "title", "year"} <= set(re.findall(r"^  (\w+) =", entry, re.MULTILINE))
    assert {
        "gfrc",
        "gfrc2",
        "permutations",
        "thesis",
        *(f"thesis-ch{n}" for n in (2, 3, 4, 5)),
    } <= set(known)


def test_no_documentation_ends_with_a_heading() -> None:
    for measure in MEASURES:
        assert not (measure.function.__doc__ or "").rstrip().endswith("---"), measure.name


def test_a_name_in_scores_has_its_own_scale() -> None:
    assert catalogue.SCALES["AC-difference"].range == "-1 to 1"
    assert catalogue.SCALES["AC-relevant"].range == catalogue.SCALES["AC"].range == "0 to 1"
    assert catalogue.SCALES["uncited"].direction == "lower is better"
    assert catalogue.SCALES["cited-share"] != catalogue.SCALES["cited-over-retrieved"]


def test_every_divergence_is_listed() -> None:
    measures = {measure.function: measure for measure in MEASURES}
    for divergence in divergences.DIVERGENCES.values():
        assert measures[divergence.function].scale.range.startswith("0 to 1")
        assert measures[divergence.function].scale.ideal == "0"


@given(
    end=st.lists(st.integers(1, 3000), min_size=1, max_size=9, unique=True),
    patience=st.integers(2, 2000),
)
def test_nugget_weights_keep_their_range(end: list[int], patience: int) -> None:
    weights = gfrc.nugget_weights(end, patience)
    assert np.all((weights >= 0) & (weights <= 1))
    assert gfrc.nugget_weights([1], patience)[0] == float(BY_NAME["pw"].scale.ideal)


def test_the_command_prints_the_same() -> None:
    told = called("measures", "rnod", "TExFAIR")
    assert told.exit_code == 0
    for name in ("RNOD", "TExFAIR"):
        measure = BY_NAME[name]
        for part in (measure.name, measure.meaning, str(measure.scale), measure.path):
            assert part in told.output
        for _, meaning in measure.symbols:
            assert f": {meaning}\n" in told.output
    assert "TED(q, k)" in told.output
    assert "@inproceedings{sakai2021," in told.output
    assert "nominal = 'jsd'  (jsd, nvd)" in called("measures", "GF and GFRC").output
    assert "GFRC2" not in told.output
    wrong = called("measures", "nothing")
    assert wrong.exit_code == 2
    assert "unknown measure nothing; must be one of JSD" in wrong.output
    names = ("RNOD", "TExFAIR", "GFRC2")
    assert len(called("measures", *names).output.split("\n  source: ")) == len(names) + 1


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
def test_a_formula_is_a_line_of_text(measure: declared.Measure) -> None:
    told = called("measures", measure.name).output.partition(": range ")[0]
    assert "\\" not in told
    assert told.count("{") == measure.formula.count(r"\{") + measure.formula.count(r"\begin")


@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("ERR", "GFR of runs"),
        ("GF-JSD", "GFR of runs"),
        ("GFR-ERR+JSD+RNOD", "GFR of runs"),
        ("iRBU(group=female)", "GFR of runs"),
        ("exposure-over-relevance", "Exposure over relevance"),
        ("NFaiRR@10", "NFaiRR"),
        ("TED(proportional=False)@10", "TED"),
        ("CRBO(p=0.9)@10", "CRBO"),
        ("D(group=she)", "GF and GFRC"),
        ("EGF", "EGNP, EGF and GFRC2"),
        ("CAB-recall", "CAB"),
        ("AC-difference", "AC"),
        ("exact_match", "Exact match"),
        ("uncited", "Precision and recall of attribution"),
        ("cited-over-retrieved", "Citation share"),
    ],
)
def test_the_command_knows_the_names_in_scores(name: str, measure: str) -> None:
    assert called("measures", name).output.startswith(f"{measure}\n")


def test_the_command_lists_every_measure_with_a_line() -> None:
    listed = " ".join(called("measures").output.split())
    for measure in MEASURES:
        assert f"{measure.name} {measure.meaning}" in listed
        assert measure.family in listed
    assert "\n  range " not in called("measures").output


def test_every_upstream_item_is_described() -> None:
    """In data/README.md, with repository, licence and limitations."""
    lines = (project.root() / "data" / "registry.tsv").read_text().splitlines()
    items = {tuple(np.array(line.split("\t"))[[0, 5]]) for line in lines[1:]}
    readme = (project.root() / "data" / "README.md").read_text()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in readme.splitlines()
        if line.startswith("| `")
    ]
    described = {(row[0].strip("`"), row[3]): row for row in rows if len(row) == 4}
    assert set(described) == items
    assert all(all(row) for row in described.values())
    limited = re.findall(r"^- `(\w+)`: [A-Z]", readme, flags=re.MULTILINE)
    assert sorted(limited) == sorted(item for item, _ in items)


def test_every_divergence_is_an_option_and_ordinal_ones_come_first() -> None:
    nominal = [name for name, one in divergences.DIVERGENCES.items() if not one.ordinal]
    assert declared.choices_of(options.Nominal) == tuple(nominal)
    ordinal = [name for name in divergences.DIVERGENCES if name not in nominal]
    assert set(declared.choices_of(options.Ordinal)) == {*ordinal, *nominal}


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
def test_every_default_passes_its_own_type(measure: declared.Measure) -> None:
    for option in measure.options:
        if option.help and option.value is not None:
            np.testing.assert_equal(option.check(option.value), option.value)
