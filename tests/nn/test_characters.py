import pytest
import torch
from torch import Tensor

from treeparse.nn.embedding import CharacterEncoder

FORMS = [[3, 2, 4], [3, 4], [3, 5, 4], [3, 5, 6, 7, 5, 8, 8, 9, 4], [3, 9, 8, 4]]


def spelled(forms: list[list[int]], places: int = 0) -> Tensor:
    longest = max(places, *map(len, forms))
    return torch.tensor([form + [0] * (longest - len(form)) for form in forms])


def make(widths: tuple[int, ...]) -> CharacterEncoder:
    torch.manual_seed(2)
    return CharacterEncoder(10, size=4, filters=3, widths=widths).double()


def naive(encoder: CharacterEncoder, form: list[int]) -> Tensor:
    """One form alone: each filter at every place that its window's middle can take, zeros around the form."""
    vectors = [encoder.embedding.weight[character] for character in form]
    parts = []
    for convolution in encoder.convolutions:
        weight, bias = convolution.weight, convolution.bias
        assert isinstance(weight, Tensor) and isinstance(bias, Tensor)
        width = weight.shape[-1]
        best = []
        for middle in range(len(form)):
            total = bias.clone()
            for offset in range(width):
                place = middle - width // 2 + offset
                if 0 <= place < len(form):
                    total = total + weight[:, :, offset] @ vectors[place]
            best.append(total)
        parts.append(torch.stack(best).amax(0).clamp_min(0))
    return torch.cat(parts)


@pytest.mark.parametrize("longest", [0, 40])
@pytest.mark.parametrize("widths", [(3,), (1,), (2,), (5, 2), (4, 3, 8), (7,)])
def test_equals_each_form_computed_alone(widths: tuple[int, ...], longest: int) -> None:
    encoder = make(widths)
    forms = torch.tensor([[0, 3, 1], [2, 4, 2]])
    result = encoder(spelled(FORMS, longest), forms)
    assert result.shape == (2, 3, encoder.output_size)
    expected = torch.stack([naive(encoder, form) for form in FORMS])[forms]
    torch.testing.assert_close(result, expected)
    cotangent = torch.randn_like(result)
    parameters = list(encoder.parameters())
    found = torch.autograd.grad((result * cotangent).sum(), parameters)
    wanted = torch.autograd.grad((expected * cotangent).sum(), parameters)
    for ours, theirs in zip(found[1:], wanted[1:], strict=True):
        torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(found[0][1:], wanted[0][1:])


def test_padding_stays_zero_in_training() -> None:
    encoder = make((3,))
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=0.1, weight_decay=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        encoder(spelled(FORMS, places=12), torch.tensor([[0, 1, 2, 3, 4]])).square().sum().backward()
        optimizer.step()
    assert (encoder.embedding.weight[0] == 0).all()
