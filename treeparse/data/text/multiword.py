"""Multiword tokens of a treebank, by which text is noticed in which they were not split."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from treeparse.data.conllu import ConlluSentence
from treeparse.data.validation import FORM, ID

MOST = 500  # multiword tokens that a model remembers
RARELY_WHOLE = 0.1  # as often as a form may be a word of its own, for each time that it is a multiword token


def multiword_tokens(sentences: Iterable[ConlluSentence]) -> dict[str, str]:
    """The most frequent multiword tokens, lower-cased, with their usual words: ``{"du": "de le"}``.

    Forms that are words of their own too are left out, because as tokens they say nothing.
    """
    words: Counter[str] = Counter()
    splits: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        forms = [form.lower() for form in sentence.words.forms]
        words.update(forms)
        for row in sentence.rows():
            first, is_range, last = row[ID].partition("-")
            if is_range:
                splits[row[FORM].lower()][" ".join(forms[int(first) - 1 : int(last)])] += 1
    counts = {form: found.total() for form, found in splits.items() if words[form] <= RARELY_WHOLE * found.total()}
    frequent = sorted(counts, key=lambda form: (-counts[form], form))[:MOST]
    return {form: splits[form].most_common(1)[0][0] for form in frequent}
