"""All that is tried."""

from fuzz import files, machines, scores
from fuzz.target import Drawn, Lived, Target

TARGETS: list[Target] = [
    Drawn("scores", scores.ON_CPU, scores.check, share=4.0),
    Drawn("scores on CUDA, emulated", scores.EMULATED, scores.check, share=1.0),
    Drawn("files", files.changed(), files.check, share=2.0),
    Lived("outputs", machines.Outputs, share=0.2, lives=50),
    Lived("runs", machines.Run, share=1.0),
]
