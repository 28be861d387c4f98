"""Which embedding model the installation uses: the one that was chosen last, by a start or by `reindex`.

Where servers with old and new settings run side by side for a while, each would otherwise embed anew what the
other has just embedded, for ever.
"""

from oauth.records import NEVER, Records

KIND = "embedding_model"
KEY = "current"


class EmbeddingModel:
    """This process's model, and whether it is the installation's."""

    def __init__(self, records: Records, name: str | None) -> None:
        """`name` is the embedder's; None where there is none."""
        self._records = records
        self._name = name

    def choose(self) -> None:
        """From now on it is this one."""
        while self._name is not None and not self.is_current():
            chosen, known = {"name": self._name}, self._records.get(KIND, KEY)
            if known is None:
                self._records.create(KIND, KEY, chosen, NEVER)
            else:
                self._records.swap(KIND, KEY, known, chosen, NEVER)

    def is_current(self) -> bool:
        """Whether this process is the one to embed what is owed."""
        known = self._records.get(KIND, KEY)
        return self._name is not None and known is not None and known["name"] == self._name
