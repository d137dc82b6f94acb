from treeparse.errors import did_you_mean


def test_suggestions():
    assert did_you_mean("predct", ["predict", "kbest"]) == "; did you mean predict?"
    assert did_you_mean("xyz", ["predict", "kbest"]) == ""
