"""The page of ``treeparse check --html``: figures of a treebank, and drawings of the trees that are worth a look."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nlargest

from treeparse.cli.sections import figure_of, section_of, tree_of
from treeparse.data.conllu import ConlluSentence
from treeparse.data.statistics import TreebankStatistics
from treeparse.errors import TreeparseError
from treeparse.pictures.charts import ShareBar, draw_bars
from treeparse.pictures.page import Figure, Section, figure, html_page, part, sections_html, table
from treeparse.sentence import EMPTY, Sentence, nonprojective_words

MOST_BARS = 25  # labels or tags
MOST_DRAWN = 20  # trees of a kind
LENGTHS = ((1, 5), (6, 10), (11, 15), (16, 20), (21, 30), (31, 40), (41, 60))  # words of a sentence

Sentences = Callable[[], Iterator[ConlluSentence]]
"""Reads the sound sentences of all files, each time anew."""


def treebank_page(
    title: str, tables: Sequence[Sequence[Sequence[str]]], counts: TreebankStatistics, read: Sentences
) -> str:
    """Return the HTML page of a treebank with these tables and counts; ``read`` is called twice."""
    first, *others = map(table, tables)
    charts = f'<div class="tp-figures">{"".join(map(figure, _bars(counts)))}</div>\n'
    body = [part("figures", "".join([first, charts, *others]))]
    kinds = Counter(kind for sentence in read() for kind in _kinds(sentence.words))
    rare, crossing = _worth_a_look(read(), kinds)
    for anchor, heading, sections in (
        ("rare", "Trees with arcs of a kind that occurs once (tag of the head, label, tag of the dependent)", rare),
        ("crossing", "Trees with non-projective arcs", crossing),
    ):
        if sections:
            body += [part(anchor, f"<h2>{heading}</h2>\n"), sections_html(sections, prefix=f"{anchor}-")]
    return html_page(title, "".join(body))


def _bars(counts: TreebankStatistics) -> Iterator[Figure]:
    """Draw the shares of sentences by length, of labels, and of tags."""
    longest = LENGTHS[-1][1]
    spans = {f"{first}-{last}": sum(counts.lengths[n] for n in range(first, last + 1)) for first, last in LENGTHS}
    spans[f"{longest + 1}+"] = sum(number for length, number in counts.lengths.items() if length > longest)
    yield from _shares("sentences by words, % (sentences)", spans)
    yield from _shares("words by label, % (words)", dict(counts.labels.most_common(MOST_BARS)), counts.labels.total())
    yield from _shares("words by UPOS, % (words)", dict(counts.upos.most_common(MOST_BARS)), counts.upos.total())


def _shares(caption: str, numbers: Mapping[str, int], total: int | None = None) -> Iterator[Figure]:
    """Draw numbers as shares of their total; nothing if all are 0."""
    total = sum(numbers.values()) if total is None else total
    if total:
        bars = [ShareBar(name, number / total, f"({number:,})") for name, number in numbers.items() if number]
        yield Figure(draw_bars(bars, caption), caption)


def _kinds(words: Sentence) -> Iterator[tuple[str, str, str]]:
    """Yield the kind of every arc: the tag of the head, the label, the tag of the dependent."""
    tags = words.upos or (EMPTY,) * len(words.forms)
    for head, label, tag in zip(words.heads or (), words.labels or (), tags, strict=False):
        if head >= 0:
            yield ("root" if head == 0 else tags[head - 1]), label, tag


def _worth_a_look(
    sentences: Iterator[ConlluSentence], kinds: Mapping[tuple[str, str, str], int]
) -> tuple[list[Section], list[Section]]:
    """Draw the trees with the most arcs of a kind that occurs once, and the first with non-projective arcs."""
    found: list[tuple[int, int, Section]] = []
    crossing: list[Section] = []
    for index, sentence in enumerate(sentences):
        words = sentence.words
        try:
            dependents = nonprojective_words(words.heads or ())
        except TreeparseError:  # no tree
            continue
        if once := [" ".join(kind) for kind in _kinds(words) if kinds[kind] == 1]:
            rank = len(once), -index
            if len(found) < MOST_DRAWN or rank > found[-1][:2]:
                section = _drawn(sentence, index, "; ".join(once))
                found = nlargest(MOST_DRAWN, [*found, (*rank, section)], key=lambda each: each[:2])
        if dependents and len(crossing) < MOST_DRAWN:
            names = ", ".join(words.forms[word - 1] for word in dependents)
            crossing.append(_drawn(sentence, index, f"heads of: {names}"))
    return [section for *_, section in found], crossing


def _drawn(sentence: ConlluSentence, index: int, caption: str) -> Section:
    return section_of(sentence, index, [figure_of(tree_of(sentence.words), None, caption)])
