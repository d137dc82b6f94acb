"""What a process has of its own, the seed of the hashes of strings first of all, changes neither ids nor batches."""

import random

from helpers.forked import Forks

from treeparse.data.batches.mixing import BucketBatchSampler
from treeparse.data.features.vocabulary import Vocabulary

WORDS = ["the", "dog", "saw", "the", "cat", "and", "the", "cat", "saw", "a", "bird"]
PROGRAM = """
from treeparse.data.batches.mixing import BucketBatchSampler
from treeparse.data.features.vocabulary import Vocabulary
print(hash("the"))
print(Vocabulary.build({words}).items)
print(list(BucketBatchSampler({lengths}, max_words=100, shuffle=True, seed=5)))
"""


def test_ids_and_batches_do_not_depend_on_the_process_or_its_hash_seed(forks: Forks) -> None:
    stream = random.Random(1)
    lengths = [min(int(stream.expovariate(0.08)) + 1, 250) for _ in range(200)]
    done = forks.run(PROGRAM.format(words=WORDS, lengths=lengths))
    assert done.returncode == 0, done.stderr
    hashed, ids, batches = done.stdout.splitlines()
    assert hashed != str(hash("the"))
    assert ids == str(Vocabulary.build(WORDS).items) == "('the', 'saw', 'cat', 'dog', 'and', 'a', 'bird')"
    assert batches == str(list(BucketBatchSampler(lengths, max_words=100, shuffle=True, seed=5)))
