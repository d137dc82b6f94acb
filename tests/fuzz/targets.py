"""All that is tried."""

from fuzz import files, scores
from fuzz.target import Target

TARGETS = [
    Target("scores", scores.ON_CPU, scores.check, share=4.0),
    Target("scores on CUDA, emulated", scores.EMULATED, scores.check, share=1.0),
    Target("files", files.changed(), files.check, share=2.0),
]
