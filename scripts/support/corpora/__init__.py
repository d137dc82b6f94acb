"""Large corpora, whole commands that parse them, and what these need."""
