"""What needs the texts: the loaders on the real files."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from itertools import permutations

import pytest

from equipoise_compendium import project, registry
from equipoise_studies.query_by_example.csfcube import load_csfcube
from equipoise_studies.query_by_example.links import CITATION, CO_CITATION, COUPLING, read_smart
from upstream import skip_without

pytestmark = pytest.mark.upstream

skip_without("csfcube", "cisi", "cacm")


def test_csfcube_itself() -> None:
    loaded = load_csfcube()  # through the registry, which checks every sha256
    facets = loaded.judgements.groupby("task")["query"].nunique()
    assert facets.to_dict() == {"background": 16, "method": 17, "result": 17}
    assert len(loaded.papers) == 4205
    folder = project.root() / os.environ[registry.MIRROR_VARIABLE] / "csfcube"
    assert len(load_csfcube(folder, own="keep").judgements) == 6244
    parts = loaded.splits.groupby(["task", "fold"])["query"].nunique()
    assert parts.eq(facets.reindex(parts.index.get_level_values("task")).to_numpy()).all()


def test_cisi_counts_papers_cited_together() -> None:
    """A link's number is at most the number of citations of either paper, which is 5 or more."""
    papers, links = read_smart(registry.fetch("cisi", "CISI.ALL"))
    assert (len(papers), len(links)) == (1460, 80321)
    is_own = links["document"] == links["other"]
    citations = links[is_own].groupby("document")["kind"].max()
    assert len(citations) == 1460
    assert citations.min() == 5
    together = links[~is_own]
    for column in ("document", "other"):
        assert (together["kind"] <= together[column].map(citations)).all()


def test_the_kinds_of_links_of_cacm_are_what_their_counts_say() -> None:
    papers, links = read_smart(registry.fetch("cacm", "cacm.all"))
    assert len(papers) == 3204
    counts: dict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
    for document, other, kind in links.itertuples(index=False):
        if document != other:
            counts[kind][document, other] += 1
    assert set(counts) == {CITATION, COUPLING, CO_CITATION}
    for pairs in counts.values():
        assert all(pairs[other, document] == n for (document, other), n in pairs.items())

    # The later of two papers cites the earlier: papers are numbered much in their order.
    cited_by, citing = defaultdict(set), defaultdict(set)
    for document, other in counts[CITATION]:
        if document > other:
            cited_by[document].add(other)
            citing[other].add(document)
    in_common = {}
    for kind, sets in ((COUPLING, citing), (CO_CITATION, cited_by)):
        in_common[kind] = Counter(
            pair for papers_in_common in sets.values() for pair in permutations(papers_in_common, 2)
        )
    equal = {}
    for kind, derived in in_common.items():
        equal[kind] = sum(counts[kind][pair] == n for pair, n in derived.items()), len(derived)
    assert equal == {COUPLING: (9836, 10798), CO_CITATION: (9006, 11424)}
