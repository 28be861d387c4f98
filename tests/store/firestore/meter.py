"""What Google would bill for the calls that pass: documents and index entries read, documents written."""

from dataclasses import dataclass

from google.cloud.firestore_v1.types import firestore as wire


@dataclass
class Meter:
    """Reads and writes as Firestore counts them; vector and count queries are counted by their least."""

    reads: int = 0
    writes: int = 0

    def take(self, method: str, request: bytes, answers: list[bytes]) -> None:
        match method:
            case "BatchGetDocuments":
                parsed = [wire.BatchGetDocumentsResponse.deserialize(each) for each in answers]
                self.reads += sum(1 for each in parsed if each.found.name or each.missing)
            case "RunQuery":
                found = [wire.RunQueryResponse.deserialize(each) for each in answers]
                self.reads += max(sum(1 for each in found if each.document.name), 1)
                query = wire.RunQueryRequest.deserialize(request).structured_query
                self.reads += 1 if query.find_nearest.vector_field.field_path else 0
            case "RunAggregationQuery":
                self.reads += 1
            case "Commit":
                self.writes += len(wire.CommitRequest.deserialize(request).writes)
