"""When two saves are the same save (TOOLS `save_context`)."""

import hashlib
import json
import unicodedata

from store.memory import Memory


def normalized(content: str) -> str:
    """NFKC, case folded, white space collapsed."""
    return " ".join(unicodedata.normalize("NFKC", content).casefold().split())


def fingerprint(memory: Memory) -> bytes:
    """SHA-256 over everything that would make it another memory."""
    covered = [
        memory.space,
        memory.topic,
        memory.state,
        memory.kind,
        sorted(memory.tags),
        str(memory.valid_from),
        str(memory.valid_until),
        memory.source.origin,
        list(memory.artifact_refs),
        memory.image_sha256,
        memory.document_id,
        normalized(memory.content),
    ]
    return hashlib.sha256(json.dumps(covered).encode()).digest()
