import pytest
import torch

from treeparse.nn.embedding import SharedDropout, WordDropout


def test_the_mask_is_shared_by_the_nodes_of_a_sentence_alone() -> None:
    torch.manual_seed(1)
    dropout = SharedDropout(0.4).train()
    mask = dropout(torch.ones(5, 7, 300))
    assert torch.equal(mask, mask[:, :1].expand_as(mask))
    assert mask.unique().tolist() == pytest.approx([0, 1 / 0.6])
    assert all(not torch.equal(mask[0, 0], mask[item, 0]) for item in range(1, 5))


def test_the_expectation_is_kept() -> None:
    torch.manual_seed(1)
    mask = SharedDropout(0.33).train()(torch.ones(1000, 1, 100))
    # 1e5 draws of standard deviation sqrt(0.33 / 0.67) = 0.7: four standard errors are 0.009.
    assert float(mask.mean()) == pytest.approx(1, abs=0.009)
    assert float((mask == 0).float().mean()) == pytest.approx(0.33, abs=0.006)


@pytest.mark.parametrize(("rate", "training"), [(0.5, False), (0.0, True)])
def test_dropout_is_the_identity_in_parsing_and_at_rate_zero(rate: float, training: bool) -> None:
    inputs, ids = torch.randn(2, 3, 4), torch.randint(0, 50, (4, 5))
    assert SharedDropout(rate).train(training)(inputs) is inputs
    assert WordDropout(rate, unknown=1, specials=3).train(training)(ids) is ids


def test_shared_dropout_leaves_its_input_and_scales_its_gradient() -> None:
    torch.manual_seed(1)
    inputs = torch.randn(3, 4, 50, dtype=torch.float64, requires_grad=True)
    before = inputs.detach().clone()
    outputs = SharedDropout(0.5).train()(inputs)
    outputs.sum().backward()
    assert torch.equal(inputs.detach(), before)
    assert inputs.grad is not None
    torch.testing.assert_close(inputs.grad * before, outputs.detach())


def test_word_dropout_drops_words_at_its_rate_and_never_specials() -> None:
    torch.manual_seed(1)
    ids = torch.randint(0, 50, (400, 100))
    dropped = WordDropout(0.2, unknown=1, specials=3).train()(ids)
    words = ids >= 3
    assert torch.equal(dropped[~words], ids[~words])
    changed = dropped != ids
    assert (dropped[changed] == 1).all()
    assert float(changed[words].float().mean()) == pytest.approx(0.2, abs=0.01)
    # Unlike the mask of shared dropout, the draws of one sentence differ.
    assert 0 < float(changed[0].float().mean()) < 1
