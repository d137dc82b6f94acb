"""``treeparse render``: trees, lists, errors and marginals as SVG and HTML; a sentence for every fault."""

import math
import operator
import re
from functools import partial
from pathlib import Path

import pytest
from helpers.commands import Capture, error_of, run
from helpers.drawn import read_drawn
from helpers.parsed_files import SENTENCES, conllu, written

from treeparse.cli.main import main
from treeparse.data.conllu import read_conllu
from treeparse.data.nbest import read_nbest
from treeparse.model import Parser

GOLD = """# sent_id = one
# text = She saw them <&>.
1	She	_	PRON	_	_	2	nsubj	_	_
2	saw	_	VERB	_	_	0	root	_	_
3	them	_	PRON	_	_	2	obj	_	_
4	<&>	_	SYM	_	_	2	dep	_	_

# sent_id = two
1	Go	_	VERB	_	_	0	root	_	_
2	!	_	PUNCT	_	_	1	punct	_	_

"""
SYSTEM = GOLD.replace("2\tdep", "3\tdep").replace("2\tobj", "2\tiobj")


render = partial(run, "render")


@pytest.fixture
def gold(tmp_path: Path) -> str:
    return written(tmp_path / "gold.conllu", GOLD)


@pytest.fixture
def system(tmp_path: Path) -> str:
    return written(tmp_path / "system.conllu", SYSTEM)


def page_of(tmp_path: Path, *arguments: str | Path | int) -> str:
    assert render(*arguments, "-o", tmp_path / "out.html") == 0
    return (tmp_path / "out.html").read_text(encoding="utf-8")


def figures(page: str) -> list[str]:
    """The drawings of a page, as documents."""
    return re.findall(r"<svg .*?</svg>", page, re.DOTALL)


def test_a_page_of_all_sentences(gold: str, tmp_path: Path) -> None:
    page = page_of(tmp_path, gold)
    one, two = map(read_drawn, figures(page))
    assert [text for _, text in one.words] == ["She", "saw", "them", "<&>"]
    assert one.tags == ["PRON", "VERB", "PRON", "SYM"]
    assert {arc for arc, _ in two.arcs} == {(0, 1), (1, 2)}
    assert 'id="s-one"' in page and 'href="#s-two"' in page and "She saw them &lt;&amp;&gt;." in page
    assert "Compared with" not in page


@pytest.mark.parametrize("choice", ["two", "2"])
def test_a_sentence_as_svg(gold: str, tmp_path: Path, choice: str, capsys: Capture) -> None:
    assert render(gold, "--sentence", choice, "-o", tmp_path / "out.svg") == 0
    assert [text for _, text in read_drawn((tmp_path / "out.svg").read_text(encoding="utf-8")).words] == ["Go", "!"]
    assert render(gold, "--sentence", choice, "--output-format", "svg") == 0
    assert capsys.readouterr().out == (tmp_path / "out.svg").read_text(encoding="utf-8")


def test_a_system_beside_gold(gold: str, system: str, tmp_path: Path) -> None:
    page = page_of(tmp_path, gold, system)
    drawn = list(map(read_drawn, figures(page)))
    assert [sorted(each.classes.get("tp-other-head", ())) for each in drawn] == [[], [(3, 4)], [], []]
    assert [each.framed for each in drawn] == [[], ["iobj"], [], []]
    assert re.findall("<figcaption[^>]*>(.*?)</", page) == [
        "gold",
        "system; differs in 1 head and 1 label",
        "gold",
        "system; the same tree",
    ]
    assert "Compared with gold" in page
    assert render(gold, system, "--sentence", "one", "--wrap", 150, "-o", tmp_path / "out.svg") == 0
    both = read_drawn((tmp_path / "out.svg").read_text(encoding="utf-8"))
    assert len(both.words) == 8 and set(both.framed) == {"iobj"}


@pytest.mark.parametrize("name", ["lists.conllu", "lists.jsonl"])
def test_lists(model: str, source: str, tmp_path: Path, name: str) -> None:
    assert main(["kbest", "-q", model, source, "-k", "5", "-o", str(tmp_path / name), "--device", "cpu"]) == 0
    page = page_of(tmp_path, tmp_path / name, "-k", 3)
    found = iter(map(read_drawn, figures(page)))
    for nbest in read_nbest(tmp_path / name):
        first = nbest.parses[0]
        for parse in nbest.parses[:3]:
            drawn = next(found)
            arcs = enumerate(zip(parse.heads, first.heads, strict=True), 1)
            other = {(head, word) for word, (head, before) in arcs if head != before}
            assert drawn.classes.get("tp-other-head", set()) == other
            assert f"probability {math.exp(parse.log_prob):.4g}" in page
    assert next(found, None) is None and "Compared with the first tree" in page


def test_ten_trees_of_a_list_unless_asked(model: str, tmp_path: Path) -> None:
    source, lists = written(tmp_path / "in.conllu", conllu(SENTENCES[0])), tmp_path / "lists.jsonl"
    assert main(["kbest", "-q", model, source, "-k", "12", "-o", str(lists), "--device", "cpu"]) == 0
    for options, count in (((), 10), (("-k", 11), 11), (("-k", 99), 12)):
        assert len(figures(page_of(tmp_path, lists, *options))) == count


@pytest.mark.slow
def test_a_large_page_is_announced(gold: str, tmp_path: Path, capsys: Capture) -> None:
    many, target = written(tmp_path / "many.conllu", GOLD.replace("She", "e" * 60_000) * 50), tmp_path / "out.html"
    warning = "treeparse: warning: 12 MB, which browsers show slowly: draw fewer"
    assert render(many, "-o", target) == 0
    assert warning in capsys.readouterr().err
    assert render(many, "-o", tmp_path / "out.html", "-q") == 0
    assert render(gold, "-o", tmp_path / "out.html") == 0
    assert capsys.readouterr().err == ""


def test_long_sentences_wrap_unasked(tmp_path: Path) -> None:
    rows = "".join(f"{word}\tdonkeys{word}\t" + "_\t" * 4 + f"{word - 1}\tdep\t_\t_\n" for word in range(2, 61))
    path = written(tmp_path / "long.conllu", f"1\tdonkeys1\t_\t_\t_\t_\t0\troot\t_\t_\n{rows}\n")

    def drawn(*options: str) -> tuple[float, int]:
        """The width of the picture, and the number of its rows."""
        [picture] = map(read_drawn, figures(page_of(tmp_path, path, *options)))
        return picture.size[0], len({y for (_, y), _ in picture.words})

    width, count = drawn()
    assert width <= 1200 and count > 2
    width, count = drawn("--wrap", "none")
    assert width > 3000 and count == 1
    assert drawn("--wrap", "600")[0] <= 600


def test_a_models_parses_beside_gold(model: str, parser: Parser, gold: str, tmp_path: Path) -> None:
    """Where a sentence has a tree, and there alone."""
    path = written(tmp_path / "in.conllu", GOLD + conllu(SENTENCES[1]))
    page = page_of(tmp_path, path, "--model", model)
    drawn = [{arc for arc, _ in picture.arcs} for picture in map(read_drawn, figures(page))]
    captions = re.findall("<figcaption[^>]*>(.*?)</", page)
    sentences = [sentence.words for sentence in read_conllu(gold)]
    parses = parser.parse([sentence.forms for sentence in sentences])
    for place, (sentence, parse) in enumerate(zip(sentences, parses, strict=True)):
        heads, labels = sentence.heads or (), sentence.labels or ()
        own = {(head, word) for word, head in enumerate(parse.heads, 1)}
        assert drawn[2 * place] == {(head, word) for word, head in enumerate(heads, 1)}
        assert drawn[2 * place + 1] == own
        other = sum(map(operator.ne, heads, parse.heads))
        relabelled = sum(h == k and a != b for h, k, a, b in zip(heads, parse.heads, labels, parse.labels, strict=True))
        counts = [(other, "head"), (relabelled, "label")]
        found = " and ".join(f"{n} {noun}{'s' * (n > 1)}" for n, noun in counts if n)
        assert captions[2 * place] == "gold"
        expected = f"probability {math.exp(parse.log_prob):.4g}; {f'differs in {found}' if found else 'the same tree'}"
        assert captions[2 * place + 1] == expected
    assert len(drawn) == 5 and "; " not in captions[4]
    assert "Compared with gold" in page


@pytest.mark.parametrize("arguments", [[], ["SYSTEM"], ["LIST"], ["--model", "MODEL"]], ids=" ".join)
def test_multiword_tokens_are_drawn(model: str, arguments: list[str], tmp_path: Path) -> None:
    text = GOLD.replace("2\tsaw", "2-3\tsaw'em\t_\t_\t_\t_\t_\t_\t_\t_\n2\tsaw")
    gold = written(tmp_path / "tokens.conllu", text)
    files = {"SYSTEM": gold, "LIST": str(tmp_path / "list.conllu"), "MODEL": model}
    assert run("kbest", "-q", model, gold, "-k", 2, "-o", files["LIST"]) == 0
    drawings = figures(page_of(tmp_path, gold, *(files.get(name, name) for name in arguments), "--sentence", "one"))
    assert len(drawings) == (3 if arguments == ["LIST"] else 2 if arguments else 1)
    for drawing in drawings:
        assert re.findall(r'class="tp-token" data-first="2" data-last="3">.*?>([^<]+)</text></g>', drawing) == [
            "saw&#x27;em"
        ]


def test_lists_beside_gold(model: str, source: str, tmp_path: Path) -> None:
    lists, gold = tmp_path / "lists.jsonl", tmp_path / "gold.conllu"
    assert main(["kbest", "-q", model, source, "-k", "2", "-o", str(lists), "--device", "cpu"]) == 0
    assert main(["predict", "-q", model, source, "-o", str(gold), "--device", "cpu"]) == 0
    page = page_of(tmp_path, gold, lists, "--sentence", 3)
    assert len(figures(page)) == 3 and page.count("; the same tree") == 1


@pytest.mark.parametrize("text", [False, True])
def test_a_models_parses_and_marginals(model: str, parser: Parser, source: str, tmp_path: Path, text: bool) -> None:
    sentences = [sentence.words.forms for sentence in read_conllu(source)]
    if text:
        source = written(tmp_path / "in.txt", "".join(f"{' '.join(words)}\n" for words in sentences))
    form = "text" if text else "conllu"
    found = figures(page_of(tmp_path, source, "--model", model, "--format", form, "--heat-map"))
    for parse, tree, matrix in zip(parser.parse(sentences), found[::2], found[1::2], strict=True):
        assert {arc for arc, _ in read_drawn(tree).arcs} == {(head, word) for word, head in enumerate(parse.heads, 1)}
        arcs = parser.distribution(parser.collate([parse.tokens])).marginals[0].sum(-1).detach()
        expected = [
            float(arcs[head, word])
            for head in range(len(parse.tokens) + 1)
            for word in range(1, len(parse.tokens) + 1)
            if head != word
        ]
        numbers = map(float, re.findall(r"<title>[^<]* → [^<]*: ([^<]*)</title>", matrix))
        assert list(numbers) == pytest.approx(expected, rel=1e-3, abs=1e-6)
        assert matrix.count('class="tp-frame"') == len(parse.tokens)


def test_the_first_sentences_of_many(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path / "many.conllu", "1\tGo\t_\t_\t_\t_\t0\troot\t_\t_\n\n" * 102)
    assert len(figures(page_of(tmp_path, path))) == 100
    assert "100 sentences drawn, the others not: see --most, --sentence" in capsys.readouterr().err
    assert render(path, "--most", 102, "-o", tmp_path / "out.html") == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["GOLD", "-o", "x.svg"], "one sentence"),
        (["GOLD", "--sentence", "three"], "'three' in the input: --sentence "),
        (["GOLD", "--heat-map"], "--model DIR."),
        (["GOLD", "SYSTEM", "--model", "m"], "leave out SYSTEM, or --model."),
        (["GOLD", "--format", "text"], "--model DIR."),
        (["GOLD", "OTHER"], "other.conllu:1: word 1 is 'Go' in gold but 'Stay'"),
        (["GOLD", "SYSTEM", "-o", "no/where.html"], "no/where.html"),
    ],
)
def test_faults(arguments: list[str], problem: str, gold: str, system: str, tmp_path: Path, capsys: Capture) -> None:
    body = GOLD.split("\n\n")[1].replace("Go", "Stay").replace("# sent_id = two\n", "")
    names = {"GOLD": gold, "SYSTEM": system, "OTHER": written(tmp_path / "other.conllu", f"{body}\n\n")}
    if "OTHER" in arguments:
        names["GOLD"] = written(tmp_path / "short.conllu", GOLD.split("\n\n")[1] + "\n\n")
    assert problem in error_of(capsys, "render", *(names.get(argument, argument) for argument in arguments))
