"""What a notebook shows of a distribution."""

import torch
from helpers.tree_cases import CASES

from treeparse import NonProjectiveCRF, NonProjectiveSiblingCRF

every_case = [case for case in CASES if case.kind.name == "projective"]


def test_a_notebook_shows_the_marginals_of_the_first_sentences() -> None:
    scores = torch.zeros(2, 3, 4, 4)
    html = NonProjectiveCRF(scores, torch.tensor([[3, 2, 3]] * 2))._repr_html_()
    assert html is not None and html.count("<svg ") == 3 and "and 3 more" in html
    assert "NonProjectiveCRF(scores: (2, 3, 4, 4)" in html
    assert html.count(">.33<") == 18  # two sentences of three words, each with three equal heads


def test_one_sentence_and_a_long_one() -> None:
    assert "more" not in str(NonProjectiveCRF(torch.zeros(4, 4))._repr_html_())
    assert "a sentence of 61 words" in str(NonProjectiveCRF(torch.zeros(62, 62))._repr_html_())


def test_labels_and_what_has_no_sums_and_no_tree() -> None:
    for case in every_case:
        trees = case.make(case.parameters(3, seed=1), None)
        html = str(trees._repr_html_())
        assert "<svg " in html and html.startswith(f"<pre>{type(trees).__name__}(")
    assert NonProjectiveSiblingCRF(torch.zeros(4, 4), torch.zeros(4, 4, 4))._repr_html_() is None
    none = torch.full((3, 3), -torch.inf)
    assert "<svg " in str(NonProjectiveCRF(none, validate_args=False)._repr_html_())
    assert "<svg " in str(NonProjectiveCRF(none)._repr_html_())
