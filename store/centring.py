"""Cosines as seen from the centre of a space.

Vectors of one model share most of their direction, and those of one space share its subject as well.
Measured from their centre, what is left tells one from another.
"""

import numpy as np
from numpy.typing import NDArray

from store.backend import Vector

PRIOR = 20
"""How many vectors of its own a space needs to outweigh the background."""


def centre_of(total: NDArray[np.floating], count: float, background: Vector) -> Vector:
    """The mean of a space's vectors, drawn to the model's background while there are few."""
    return np.asarray((PRIOR * background + total) / (PRIOR + count), np.float32)


def distances_from(centre: Vector, vectors: Vector) -> Vector:
    """Of each vector, float32[n]; a vector at the very centre has no direction, so its cosine shall be 0."""
    distances: Vector = np.linalg.norm(vectors - centre, axis=1).astype(np.float32)
    distances[distances == 0] = 1
    return distances


def direction_of(query: Vector, centre: Vector) -> Vector:
    """Where the query lies, a vector of unit length."""
    offset = query - centre
    return np.asarray(offset / max(float(np.linalg.norm(offset)), 1e-6), np.float32)


def cosines(vectors: Vector, distances: Vector, query: Vector, centre: Vector) -> Vector:
    """The cosine of each vector to the query, both seen from the centre."""
    direction = direction_of(query, centre)
    return np.asarray((vectors @ direction - centre @ direction) / distances, np.float32)
