"""What a process has of its own, the seed of the hashes of strings first of all, changes neither ids nor batches."""

import os
import random
import subprocess
import sys

from treeparse.data.batches.batching import BucketBatchSampler
from treeparse.data.features.vocabulary import Vocabulary

WORDS = ["the", "dog", "saw", "the", "cat", "and", "the", "cat", "saw", "a", "bird"]
PROGRAM = """
from treeparse.data.batches.batching import BucketBatchSampler
from treeparse.data.features.vocabulary import Vocabulary
print(Vocabulary.build({words}).items)
print(list(BucketBatchSampler({lengths}, max_words=100, shuffle=True, seed=5)))
"""


def test_ids_and_batches_do_not_depend_on_the_process_or_its_hash_seed() -> None:
    stream = random.Random(1)
    lengths = [min(int(stream.expovariate(0.08)) + 1, 250) for _ in range(200)]
    command = [sys.executable, "-c", PROGRAM.format(words=WORDS, lengths=lengths)]
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    ids, batches = done.stdout.splitlines()
    assert ids == str(Vocabulary.build(WORDS).items) == "('the', 'saw', 'cat', 'dog', 'and', 'a', 'bird')"
    assert batches == str(list(BucketBatchSampler(lengths, max_words=100, shuffle=True, seed=5)))
