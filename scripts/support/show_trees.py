"""Draw the trees of CoNLL-U on standard input as indented text, words in their order, labels beside them."""

from treeparse.data.conllu import read_conllu
from treeparse.sentence import Sentence


def draw_tree(sentence: Sentence) -> list[str]:
    """One line a word in sentence order, indented by depth: word, label, head."""
    assert sentence.heads is not None and sentence.labels is not None
    lines = []
    for form, head, label in zip(sentence.forms, sentence.heads, sentence.labels, strict=True):
        depth = 0
        above = head
        while above:
            above = sentence.heads[above - 1]
            depth += 1
        governor = f" of {sentence.forms[head - 1]}" if head else ""
        lines.append(f"{'    ' * depth}{form}".ljust(32) + f"{label}{governor}")
    return lines


def main() -> None:
    """Draw every tree."""
    for parsed in read_conllu("-", require_trees=True):
        print(" ".join(parsed.words.forms), *("  " + line for line in draw_tree(parsed.words)), "", sep="\n")


if __name__ == "__main__":
    main()
