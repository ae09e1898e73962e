"""What claims of gfrc and gfrc2 rest on: SciPy's beta for intervals, Eqs. 14 to 19 by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from equipoise.attributes import read_attributes
from equipoise.divergences import distribution_similarity
from equipoise.nuggets import read_nuggets
from equipoise_compendium import project
from equipoise_compendium.claims import stated
from equipoise_compendium.printed import printed_table
from equipoise_studies.pilot import claims

SETS = read_attributes(project.data("attributes", "fairweb_researchers.yaml"))


def test_a_mean_over_topics_has_the_interval_of_its_topics() -> None:
    """As wide as that of a binomial of 40 topics, not of their 160 trials, which all agree."""
    values = pd.DataFrame(
        {"topic": np.repeat(np.arange(40), 4), "value": np.repeat(np.arange(40) % 2, 4)}
    )
    found = claims.clustered(values, "a share")
    low, high = stats.binom.ppf([0.025, 0.975], 40, 0.5) / 40
    assert (found.estimate, found.n) == (0.5, 40)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.03)
    weighed = values.assign(weight=[3.0, 1.0, 1.0, 1.0, *[1.0] * 156])
    assert claims.clustered(weighed, "a share", "weight").estimate == pytest.approx(80 / 162)


def test_the_smallest_lead_is_named() -> None:
    scores = pd.DataFrame({"R": [0.5, 0.2], "GF": [0.4, 0.45]}, index=["a", "b"])
    found = claims.smallest_lead(scores, "a", "b")
    assert found.estimate == pytest.approx(-0.05)
    assert "in GF" in found.said


def test_steadiness_compares_ranges() -> None:
    assert claims.steadiness(
        pd.Series([0.0, 1.0, 4.0, 3.0, 5.0], name="GNP"), 3
    ).estimate == pytest.approx(2 / 4)
    assert claims.still(pd.Series([0.2, 0.7, 0.4], name="GF")).estimate == pytest.approx(0.5)


def test_one_more_nugget_of_the_majority() -> None:
    frame = pd.read_csv(project.data("conversations", "R112.csv"), dtype=str, keep_default_na=False)
    more = claims.one_more_nugget(frame, SETS, patience=1000, ordinal="rnod", nominal="jsd")
    printed = printed_table("gfrc2/table-3").set_index("run").astype(float)
    for row in more[more["added"] == 0].itertuples():
        assert round(row.EGF, 6) == printed.loc[row.run, f"EGF {row.attribute}"]
    copwa = more[(more["run"] == "COPWA-CS-QD-MN-2") & (more["attribute"] == "PRONOUN")].set_index(
        "added"
    )
    seventh = distribution_similarity([6 / 7, 1 / 7, 0], [1 / 3] * 3, "jsd") / 1000
    assert copwa.loc[1, "EGF"] - copwa.loc[0, "EGF"] == pytest.approx(seventh, rel=1e-9)
    assert list(copwa["nuggets"]) == [6, 7]
    found = claims.quantity(more, "COPWA-CS-QD-MN-2", "PRONOUN")
    assert found.estimate == pytest.approx(seventh)


def test_only_the_organisers_target_gives_the_printed_digits() -> None:
    sets = read_attributes(project.data("attributes", "fairweb_movies.yaml"))
    nuggets = read_nuggets(project.data("conversations", "M002.csv"), sets)
    table = claims.against_targets(nuggets, sets, printed_table("gfrc/table-2"))
    assert np.allclose(table["organisers"], table["printed"], atol=5e-5)
    assert claims.target_fits(table, "uniform").estimate == pytest.approx(
        max(abs(table["uniform"] - table["printed"]))
    )
    assert not np.allclose(table["uniform"], table["printed"], atol=0.01)


def test_the_quoted_gains_are_of_another_scale() -> None:
    quote = stated("gfrc").loc["gain-scale", "quote"]
    assert claims.quoted_gain(quote, printed_table("gfrc/table-1")).estimate == pytest.approx(2)
