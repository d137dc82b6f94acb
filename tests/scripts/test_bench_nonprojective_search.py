"""The benchmark of the exact search reads a model and a treebank and counts what it finds."""

from dataclasses import replace
from pathlib import Path

from helpers.parsers import CONFIG, TRAINING, random_parser
from scripts.benchmarks import bench_nonprojective_search

from treeparse.data.conllu import ConlluSentence, write_conllu


def test_a_row_for_each_model(tmp_path: Path) -> None:
    parser = random_parser(replace(CONFIG, trees="nonprojective_siblings", part_size=4)).float()
    parser.save_pretrained(tmp_path / "model")
    parsed = [
        ConlluSentence.from_forms(each.forms).with_parse(each.heads or (), each.labels or ()) for each in TRAINING
    ]
    write_conllu(test := tmp_path / "test.conllu", parsed[:6])
    row = [*bench_nonprojective_search.table([(tmp_path / "model", test)])][-1]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:3] == ["model", "test", "6"] and cells[4] == "100.0%" and int(cells[5]) >= 1
    root, projective, climbed = (float(cells[at].rstrip("%")) for at in (3, 6, 7))
    assert 0 <= root <= 100 and projective <= climbed <= 100
    assert all(float(cell) > 0 for cell in cells[8:])
