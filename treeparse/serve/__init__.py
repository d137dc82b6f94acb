r"""An HTTP server of parsers, with the requests and answers of UDPipe's REST service.

Clients of UDPipe's service (https://lindat.mff.cuni.cz/services/udpipe/api-reference.php) can use this one unchanged;
raw text needs a server with a tokenizer. ``GET`` or ``POST /process`` parses; its parameters are in the query, or in a
body that is ``application/x-www-form-urlencoded`` or ``multipart/form-data``::

    data             the sentences, in UTF-8; required
    model            a name from /models, or the part of a name before a hyphen; by default the first one
    input            conllu (default), horizontal: one a line, words between spaces, or vertical: one word a line
    output           conllu (default); of lists jsonl; of parses json, whose result is a list of objects with tokens,
                     heads, labels, probabilities, and arc_marginals: for each word those of all heads from the root on
    tokenizer        the data are raw text whose lines are paragraphs, or sentences with the option presegmented; the
                     option normalized_spaces has no effect; semicolons separate options
    tagger           write the tags that the model predicts; no effect if the model predicts none; an error with lists
    parser           no effect: every sentence is parsed, so that parser=none is an error

    keep             heads: keep the heads and labels that the CoNLL-U has, _ leaves them open; probabilities are
                     conditional on them
    within           1: each word's head is one of Heads=2,5 in its MISC, if it has some
    rules            ud, or the text of a file of rules, that trees must satisfy
    head_sets        a share of words, such as 0.05: Heads=2,5 in MISC, which holds the head of all but these
    certain          a share of sentences: heads and labels of the words that are all right in all but these, else _
    probabilities    1: write probabilities of arcs and labels in MISC, of trees and their entropy in comments, as
                     predict does; in JSON Lines as fields of each tree
    kbest            a number K: the K best trees of each sentence, as the command kbest writes them
    sample           a number K: K trees drawn at random, as the command sample writes them
    treebank         the name of a treebank that the model was trained on: parse as it is annotated; by default their
                     mean
    seed             of samples, a whole number (default 0): the same data and seed give the same trees

An answer is JSON::

    {"model": "english", "acknowledgements": ["treeparse 0.1.0"], "result": "1\tThey\t..."}

A refused request is answered with one plain sentence: 400 for faulty parameters or data, with the line; 404 for an
unknown model; 408 for a request that does not arrive in time; 413 for a request that is too long; 503 with
``Retry-After`` if too many requests wait, or if the request was not parsed in time. ``/models`` lists the models and
what they can do, ``/health`` is for monitoring, and ``/metrics`` has counts for Prometheus.

Requests are parsed in the order in which they come; those with equal parameters that wait are parsed in one batch. A
tree does not depend on other requests; the last digit of a score may, as in ``predict --batch-words``. The requests of
clients that leave before their turn are not parsed. ``/openapi.json`` describes all parameters. There is no encryption
and no authentication: by default the server listens only to its own machine; where others can reach it, put a proxy in
between that provides both.

In a program::

    from treeparse import Parser
    from treeparse.serve import Limits, serve

    serve({"english": Parser.from_pretrained("runs/english")}, port=8001, limits=Limits(seconds=10))
"""

from treeparse.serve.process_request import Limits
from treeparse.serve.server import HOST, PORT, serve

__all__ = [
    "HOST",
    "PORT",
    "Limits",
    "serve",
]
