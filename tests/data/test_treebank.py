import gzip
from pathlib import Path

import pytest

from treeparse.data.conllu import load_treebank, read_conllu
from treeparse.data.statistics import TreebankStatistics
from treeparse.errors import DataError, TreeparseError


def sentence(sent_id: str, head: int | str = 0) -> bytes:
    return f"# sent_id = {sent_id}\n1\tx\t_\t_\t_\t_\t{head}\troot\t_\t_\n\n".encode()


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "b.conllu").write_bytes(sentence("b1") + sentence("b2"))
    (tmp_path / "a.conllu").write_bytes(sentence("a1"))
    (tmp_path / "c.conllu.gz").write_bytes(gzip.compress(sentence("c1") + sentence("c2", "_") + sentence("c3")))
    return tmp_path


def test_files_and_globs_make_one_treebank(folder, monkeypatch):
    monkeypatch.setenv("TREEBANK", str(folder))
    loaded = load_treebank([folder / "b.conllu", "$TREEBANK/*.gz", "$TREEBANK/a*"], require_trees=False)
    assert [each.sent_id for each in loaded] == ["b1", "b2", "c1", "c2", "c3", "a1"]
    assert {Path(each.source).name for each in loaded[2:5]} == {"c.conllu.gz"}


def test_trees_are_required_unless_said_otherwise(folder):
    with pytest.raises(DataError, match=r"c\.conllu\.gz:5: sentence c2: word 1 has no head"):
        load_treebank([folder / "*"])


def test_invalid_sentences_can_be_skipped(folder):
    told: list[DataError] = []
    loaded = load_treebank([folder / "*"], on_invalid=told.append)
    assert [each.sent_id for each in loaded] == ["a1", "b1", "b2", "c1", "c3"]
    assert [fault.sent_id for fault in told] == ["c2"]


def test_several_roots_only_where_allowed(folder):
    path = folder / "roots"
    path.write_bytes(b"1\tx\t_\t_\t_\t_\t0\troot\t_\t_\n2\tx\t_\t_\t_\t_\t0\troot\t_\t_\n")
    with pytest.raises(DataError, match="all hang from the root"):
        load_treebank([path])
    assert load_treebank([path], single_root=False)[0].words.heads == (0, 0)


def test_nothing_left_is_an_error(folder):
    path = folder / "bad"
    path.write_bytes(sentence("bad", "_"))
    with pytest.raises(TreeparseError, match=r"No sentence is valid in .*bad"):
        load_treebank([path], on_invalid=lambda fault: None)
    with pytest.raises(TreeparseError, match="A treebank needs at least one file"):
        load_treebank([])


@pytest.mark.parametrize("kind", [str, Path])
def test_one_path_is_one_path(folder, kind):
    assert [each.sent_id for each in load_treebank(kind(folder / "b.conllu"))] == ["b1", "b2"]
    with pytest.raises(TreeparseError, match=r"there is no file .*absent"):
        load_treebank(kind(folder / "absent"))
    with pytest.raises(TreeparseError, match="A treebank needs at least one file"):
        load_treebank("")


def rows_of(*heads, ranges=(), empty_nodes=()):
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


PROJECTIVE = rows_of(2, 0, 2, ranges=["1-2"], empty_nodes=["3.1", "3.2"])
CROSSING = rows_of(3, 0, 2, 3, 2)  # 3 -> 1 spans word 2, its head
TWO_ROOTS = rows_of(0, 0)
CYCLE = rows_of(2, 1, 0, 1)
NO_TREE = rows_of("_")


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
