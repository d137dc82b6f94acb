import pytest

from treeparse.data.conllu import read_conllu
from treeparse.data.statistics import TreebankStatistics


def sentence(*heads, ranges=(), empty_nodes=()):
    lines = []
    for word, head in enumerate(heads, 1):
        lines += [f"{each}\tx" + "\t_" * 8 for each in ranges if each.startswith(f"{word}-")]
        lines.append(f"{word}\tx" + "\t_" * 4 + f"\t{head}\t{'dep' if head else 'root'}\t_\t_")
        lines += [f"{each}\tx" + "\t_" * 8 for each in empty_nodes if each.startswith(f"{word}.")]
    return "\n".join([*lines, "", ""])


@pytest.fixture
def count(tmp_path):
    def count(*sentences):
        path = tmp_path / "treebank.conllu"
        path.write_text("".join(sentences))
        return TreebankStatistics.of(read_conllu(path))

    return count


PROJECTIVE = sentence(2, 0, 2, ranges=["1-2"], empty_nodes=["3.1", "3.2"])
CROSSING = sentence(3, 0, 2, 3, 2)  # 3 -> 1 spans word 2, its head
TWO_ROOTS = sentence(0, 0)
CYCLE = sentence(2, 1, 0, 1)
NO_TREE = sentence("_")


def test_counts_by_hand(count):
    counted = count(PROJECTIVE, CROSSING, TWO_ROOTS, CYCLE, NO_TREE)
    assert counted.sentences == 5
    assert counted.words == 3 + 5 + 2 + 4 + 1
    assert (counted.multiword_tokens, counted.empty_nodes) == (1, 2)
    assert (counted.trees, counted.arcs, counted.roots) == (3, 10, 4)
    assert (counted.nonprojective_sentences, counted.nonprojective_arcs) == (1, 1)
    assert counted.lengths == {1: 1, 2: 1, 3: 1, 4: 1, 5: 1}
    assert counted.labels == {"root": 5, "dep": 10}
    assert counted.length_summary == {"min": 1, "median": 3, "mean": 3, "max": 5}


def test_parts_add_up(count):
    parts = count(PROJECTIVE, TWO_ROOTS) + count(CROSSING, CYCLE, TWO_ROOTS)
    assert parts == count(PROJECTIVE, TWO_ROOTS, CROSSING, CYCLE, TWO_ROOTS)
    assert parts.length_summary["median"] == 3


def test_json_has_labels_by_frequency(count):
    values = count(PROJECTIVE, CROSSING).to_json()
    assert list(values["labels"].items()) == [("dep", 6), ("root", 2)]
    assert values["lengths"] == {"min": 3, "median": 4, "mean": 4, "max": 5}
    assert values["nonprojective_arcs"] == 1


def test_nothing_counts_nothing():
    assert TreebankStatistics.of([]) == TreebankStatistics()
    assert TreebankStatistics().to_json()["lengths"] == {}
