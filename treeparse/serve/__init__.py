r"""Parsers behind HTTP, with the requests and answers of UDPipe's REST service.

A program that talks to UDPipe's (https://lindat.mff.cuni.cz/services/udpipe/api-reference.php) talks to this one as it
is, but that the models here take tokenised sentences. ``GET`` or ``POST /process`` parses; its parameters come in the
query, or in a body that is ``application/x-www-form-urlencoded`` or ``multipart/form-data``::

    data             the sentences, in UTF-8; always
    model            a name that /models has, or its beginning before a hyphen; by default the first one
    input            conllu (default), horizontal: one a line, words between spaces, or vertical: one word a line
    output           conllu (default); of lists jsonl, too
    tagger           write the tags that the model predicts; without effect where it predicts none, and on lists
    parser           without effect: all is parsed
    tokenizer        an error: send tokenised sentences without it

    probabilities    1: of arcs and labels in MISC, of trees and their entropy in comments, as predict has them; in
                     JSON Lines fields of each tree
    kbest            a number K: the K best trees of each sentence, as the command kbest writes them
    sample           a number K: K trees drawn at random, as the command sample writes them
    seed             of samples, a whole number (default 0): the same trees again for the same data

An answer is JSON::

    {"model": "english", "acknowledgements": ["treeparse 0.1.0"], "result": "1\tThey\t..."}

A request that is not done is answered with one plain sentence: 400 for faulty parameters or data, with the line; 404
for another address or model; 408 for a request that does not arrive in time; 413 for one that is too long; 503 with
``Retry-After`` where too many wait, or where it was not parsed in time. ``/models`` has the models and what they can
do, ``/health`` is for whoever watches over the server, and ``/metrics`` has counts for Prometheus.

Requests that ask the same are parsed in one batch, and long ones in turn with the others. A tree does not depend on
what else is asked; the last digit of a score may, as in ``predict --batch-words``. What a client that has gone asked
for is not parsed. There is no encryption and nobody is asked who they are: the server listens to its own machine unless
told otherwise, and where strangers can reach it belongs behind a proxy that sees to both.

In a program of one's own::

    from treeparse import Parser
    from treeparse.serve import Limits, serve

    serve({"english": Parser.from_pretrained("runs/english")}, port=8001, limits=Limits(seconds=10))
"""

from treeparse.serve.limits import Limits as Limits
from treeparse.serve.running import HOST as HOST
from treeparse.serve.running import PORT as PORT
from treeparse.serve.running import serve as serve
