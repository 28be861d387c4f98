"""The centre of a space's vectors, kept beside the space and found anew once it has grown by a tenth.

While a space is small every vector counts; of a large one a sample tells the mean well enough. So the cost
of knowing it stays a small part of the cost of the saves.
"""

import numpy as np

from store import centring
from store.backend import Background, Vector
from store.firestore.database import Ask, Tenant
from store.firestore.settling import to_array
from store.firestore.shapes import vector_field
from store.firestore.stored import hashed

SAMPLE = 300
GROWTH = 0.1
"""The share by which the number of vectors may differ before the mean is taken again."""


def centre_of_space(tenant: Tenant, space: str, model: str, background: Background, embedded: int) -> Vector:
    """As `centring.centre_of`, from the mean that is kept."""
    reference = tenant.document("centres", hashed("centre", space, model))
    kept = tenant.database.get(reference).to_dict()
    if kept is None or abs(embedded - kept["embedded"]) > GROWTH * kept["embedded"]:
        mean = _mean(tenant, space, model, len(background.centre))
        kept = {"space": space, "embedded": embedded, "mean": mean.tolist()}
        tenant.database.patience.read(lambda: reference.set(kept))
    mean = np.asarray(kept["mean"], np.float32)
    return centring.centre_of(mean * embedded, embedded, background.centre)


def _mean(tenant: Tenant, space: str, model: str, dimensions: int) -> Vector:
    """Of a sample: the passages' numbers are hashes, so their order is as good as drawn by lot."""
    field = vector_field(dimensions)
    found = tenant.ask(
        Ask(
            "passages",
            (("shelf", "==", space), ("model", "==", model)),
            ("number", "ASCENDING"),
            limit=SAMPLE,
            select=(field,),
        )
    )
    vectors = [to_array(each.get(field)) for each in found]
    mean: Vector = np.mean(vectors, axis=0) if vectors else np.zeros(dimensions, np.float32)
    return mean
