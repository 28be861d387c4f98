"""The tables, as numbered steps that only ever grow. Times are microseconds since the epoch, UTC.

Every table that holds an owner's data is led by the owner, so that nobody else's rows are ever walked over.
`memories.changed` and `owners.generation` count an owner's changes: caches of other processes ask for what is
newer than they know.
"""

_FIRST = (
    """CREATE TABLE records (
        kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, expires_at INTEGER NOT NULL,
        PRIMARY KEY (kind, key)
    ) WITHOUT ROWID""",
    "CREATE INDEX records_expiry ON records (expires_at)",
    # One row for each top-level string of a record, so that `select` is a look-up.
    """CREATE TABLE record_fields (
        kind TEXT NOT NULL, field TEXT NOT NULL, value TEXT NOT NULL, key TEXT NOT NULL,
        PRIMARY KEY (kind, field, value, key),
        FOREIGN KEY (kind, key) REFERENCES records (kind, key) ON DELETE CASCADE
    ) WITHOUT ROWID""",
    "CREATE INDEX record_fields_record ON record_fields (kind, key)",
    """CREATE TABLE owners (
        n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL,
        generation INTEGER NOT NULL DEFAULT 0, rebuilt INTEGER NOT NULL DEFAULT 0,
        is_closed INTEGER NOT NULL DEFAULT 0
    )""",
    """CREATE TABLE identities (
        key TEXT PRIMARY KEY, owner TEXT NOT NULL REFERENCES owners (id) ON DELETE CASCADE,
        provider TEXT NOT NULL, label TEXT NOT NULL, created_at INTEGER NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX identities_owner ON identities (owner)",
    """CREATE TABLE spaces (
        owner TEXT NOT NULL REFERENCES owners (id) ON DELETE CASCADE, id TEXT NOT NULL, name TEXT NOT NULL,
        created_at INTEGER NOT NULL, PRIMARY KEY (owner, id), UNIQUE (owner, name)
    ) WITHOUT ROWID""",
    """CREATE TABLE app_profiles (
        owner TEXT NOT NULL REFERENCES owners (id) ON DELETE CASCADE, app TEXT NOT NULL, space TEXT,
        profile TEXT NOT NULL DEFAULT '{}', PRIMARY KEY (owner, app)
    ) WITHOUT ROWID""",
    """CREATE TABLE memories (
        n INTEGER PRIMARY KEY, owner TEXT NOT NULL, id TEXT NOT NULL, space TEXT NOT NULL, app TEXT NOT NULL,
        content TEXT NOT NULL, topic TEXT NOT NULL, state TEXT NOT NULL, kind TEXT NOT NULL,
        tags TEXT NOT NULL, modality TEXT NOT NULL, artifact_refs TEXT NOT NULL, pinned INTEGER NOT NULL,
        source TEXT NOT NULL, origin TEXT NOT NULL, external_id TEXT,
        is_proposal INTEGER NOT NULL DEFAULT 0,
        retrieval_text TEXT, image_sha256 TEXT, document_id TEXT,
        valid_from INTEGER, valid_until INTEGER, superseded_by TEXT,
        created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, last_used_at INTEGER,
        revision INTEGER NOT NULL, archived_at INTEGER, changed INTEGER NOT NULL, UNIQUE (owner, id),
        FOREIGN KEY (owner, space) REFERENCES spaces (owner, id) ON DELETE CASCADE
    )""",
    "CREATE INDEX memories_changed ON memories (owner, space, changed)",
    "CREATE INDEX memories_created ON memories (owner, space, created_at, id)",
    # A forgotten memory frees its external_id; beside a live one, one proposal may wait to change it.
    """CREATE UNIQUE INDEX memories_external ON memories (owner, space, app, external_id, is_proposal)
        WHERE external_id IS NOT NULL AND archived_at IS NULL AND (is_proposal = 0 OR state = 'pending')""",
    """CREATE TABLE revisions (
        owner TEXT NOT NULL, memory TEXT NOT NULL, revision INTEGER NOT NULL, value TEXT NOT NULL,
        created_at INTEGER NOT NULL, PRIMARY KEY (owner, memory, revision),
        FOREIGN KEY (owner, memory) REFERENCES memories (owner, id) ON DELETE CASCADE
    ) WITHOUT ROWID""",
    """CREATE TABLE passages (
        n INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL,
        memory INTEGER NOT NULL REFERENCES memories (n) ON DELETE CASCADE, ordinal INTEGER NOT NULL,
        text TEXT NOT NULL, length INTEGER NOT NULL, model TEXT, vector BLOB, UNIQUE (memory, ordinal)
    )""",
    "CREATE INDEX passages_model ON passages (model)",
    # Each token carries its owner, so a term's postings are that owner's alone.
    """CREATE VIRTUAL TABLE terms USING fts5(tokens, tokenize="ascii tokenchars '+#$'")""",
    "CREATE VIRTUAL TABLE postings USING fts5vocab('terms', 'instance')",
    """CREATE TABLE fingerprints (
        owner TEXT NOT NULL, fingerprint BLOB NOT NULL, memory TEXT NOT NULL, created_at INTEGER NOT NULL,
        PRIMARY KEY (owner, fingerprint),
        FOREIGN KEY (owner, memory) REFERENCES memories (owner, id) ON DELETE CASCADE
    ) WITHOUT ROWID""",
    "CREATE INDEX fingerprints_memory ON fingerprints (owner, memory)",
    """CREATE TABLE events (
        n INTEGER PRIMARY KEY, owner TEXT NOT NULL, at INTEGER NOT NULL, value TEXT NOT NULL
    )""",
    "CREATE INDEX events_owner ON events (owner, at)",
    "CREATE INDEX events_at ON events (at)",
    """CREATE TABLE queries (
        n INTEGER PRIMARY KEY, owner TEXT NOT NULL REFERENCES owners (id) ON DELETE CASCADE,
        at INTEGER NOT NULL, app TEXT NOT NULL, query TEXT NOT NULL, found TEXT NOT NULL
    )""",
    "CREATE INDEX queries_owner ON queries (owner, at)",
    "CREATE INDEX queries_at ON queries (at)",
    # So many a minute are kept; of those beyond only the number, lest a stranger fill the owner's disk.
    "CREATE TABLE rejections (n INTEGER PRIMARY KEY, at INTEGER NOT NULL, value TEXT NOT NULL)",
    "CREATE INDEX rejections_at ON rejections (at)",
    "CREATE TABLE rejections_beyond (minute INTEGER PRIMARY KEY, count INTEGER NOT NULL)",
)

_DOCUMENTS: tuple[str, ...] = (
    # `key` is how the app knows the document again; `chunks` are the ids of its memories, in order.
    """CREATE TABLE documents (
        owner TEXT NOT NULL, id TEXT NOT NULL, space TEXT NOT NULL, app TEXT NOT NULL, key TEXT NOT NULL,
        title TEXT NOT NULL, source TEXT NOT NULL, content_hash TEXT NOT NULL, chunks TEXT NOT NULL,
        created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, revision INTEGER NOT NULL,
        archived_at INTEGER, PRIMARY KEY (owner, id),
        FOREIGN KEY (owner, space) REFERENCES spaces (owner, id) ON DELETE CASCADE
    ) WITHOUT ROWID""",
    """CREATE UNIQUE INDEX documents_key ON documents (owner, space, app, key)
        WHERE archived_at IS NULL""",
    "CREATE INDEX memories_document ON memories (owner, document_id) WHERE document_id IS NOT NULL",
    """CREATE TABLE turns (
        owner TEXT NOT NULL, space TEXT NOT NULL, session TEXT NOT NULL, number INTEGER NOT NULL,
        app TEXT NOT NULL, client_name TEXT NOT NULL, role TEXT NOT NULL, content TEXT NOT NULL,
        at INTEGER NOT NULL, PRIMARY KEY (owner, space, session, number),
        FOREIGN KEY (owner, space) REFERENCES spaces (owner, id) ON DELETE CASCADE
    ) WITHOUT ROWID""",
)
_GRAPH: tuple[str, ...] = (
    # From a memory to an entity's key, or for `derived_from` to another memory's id.
    """CREATE TABLE edges (
        owner TEXT NOT NULL, target TEXT NOT NULL, kind TEXT NOT NULL,
        memory INTEGER NOT NULL REFERENCES memories (n) ON DELETE CASCADE,
        name TEXT NOT NULL, weight INTEGER NOT NULL, PRIMARY KEY (owner, target, kind, memory)
    ) WITHOUT ROWID""",
    "CREATE INDEX edges_memory ON edges (memory)",
    "CREATE INDEX memories_kind ON memories (owner, space, kind, created_at, id)",
    "CREATE INDEX memories_pinned ON memories (owner, space, created_at, id) WHERE pinned = 1",
    """CREATE INDEX memories_superseded ON memories (owner, superseded_by)
        WHERE superseded_by IS NOT NULL""",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = ((*_FIRST, *_DOCUMENTS, *_GRAPH),)
