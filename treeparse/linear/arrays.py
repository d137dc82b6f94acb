"""Feature templates as the arrays that kernels read."""

from collections.abc import Sequence

import numpy as np

from treeparse.kernels.linear.features import Templates
from treeparse.linear.templates import BETWEEN, MOST_SLOTS, ROLES, Template, text_hash


def as_arrays(templates: Sequence[Template], attributes: Sequence[str], kind: str) -> Templates:
    """Return templates as a kernel reads them, by the indices of attributes; those of another kind hash differently."""
    slots = np.full((3, len(templates), MOST_SLOTS, 2), -1)
    salts, between = np.zeros((3, len(templates)), np.uint32), np.full(len(templates), -1)
    for t, template in enumerate(templates):
        counts = [0, 0, 0]
        for slot in template.slots:
            index = attributes.index(slot.attribute)
            if slot.role == BETWEEN:
                between[t] = index
                continue
            role = ROLES[slot.role]
            slots[role, t, counts[role]] = index, slot.offset
            counts[role] += 1
        salts[:, t] = [text_hash(f"{kind} {template} {role}") for role in range(3)]
    return Templates(slots, salts, between, np.array([template.distance for template in templates], np.bool_))
