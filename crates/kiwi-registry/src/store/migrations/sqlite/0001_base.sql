-- Who may do what.
CREATE TABLE users (
    name TEXT PRIMARY KEY,
    created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- A token is known by its digest alone.
CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    user_name TEXT NOT NULL REFERENCES users (name),
    scopes TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE namespaces (
    name TEXT PRIMARY KEY,
    created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE namespace_owners (
    namespace TEXT NOT NULL REFERENCES namespaces (name),
    user_name TEXT NOT NULL REFERENCES users (name),
    PRIMARY KEY (namespace, user_name)
) STRICT, WITHOUT ROWID;
CREATE INDEX namespace_owners_by_user ON namespace_owners (user_name);

-- A tool belongs to the owners of its namespace, or to the one user who published it first.
CREATE TABLE tools (
    number INTEGER PRIMARY KEY,
    tool_id TEXT NOT NULL UNIQUE,
    namespace TEXT REFERENCES namespaces (name),
    owner TEXT REFERENCES users (name),
    visibility TEXT NOT NULL CHECK (visibility IN ('public', 'unlisted', 'private')),
    description TEXT NOT NULL,
    tool_type TEXT NOT NULL,
    revision INTEGER NOT NULL,
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX tools_by_namespace ON tools (namespace);
CREATE INDEX tools_by_owner ON tools (owner);
-- Versions that differ only in what stands behind a `+` are one: nobody could tell which is newer.
CREATE TABLE tool_versions (
    number INTEGER PRIMARY KEY,
    tool_id TEXT NOT NULL REFERENCES tools (tool_id),
    version TEXT NOT NULL,
    version_key TEXT NOT NULL,
    core_key TEXT NOT NULL,
    is_early INTEGER NOT NULL,
    integrity TEXT NOT NULL,
    manifest TEXT NOT NULL,
    tool_type TEXT NOT NULL,
    description TEXT NOT NULL,
    executor TEXT,
    executor_id TEXT,
    executor_from TEXT,
    executor_below TEXT,
    executor_early TEXT,
    is_latest INTEGER NOT NULL,
    yanked TEXT,
    published_at TEXT NOT NULL,
    publisher TEXT NOT NULL REFERENCES users (name),
    attempt TEXT,
    signature_key TEXT,
    signature TEXT,
    UNIQUE (tool_id, version_key)
) STRICT;
CREATE INDEX tool_versions_latest ON tool_versions (tool_id) WHERE is_latest = 1;

CREATE TABLE blobs (
    digest TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    place TEXT NOT NULL CHECK (place IN ('database', 'folder')),
    created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- Who has shown that they have the bytes: knowing a digest is not enough to publish what it stands for.
CREATE TABLE blob_uploads (
    digest TEXT NOT NULL REFERENCES blobs (digest),
    user_name TEXT NOT NULL REFERENCES users (name),
    PRIMARY KEY (digest, user_name)
) STRICT, WITHOUT ROWID;
CREATE TABLE blob_pieces (
    digest TEXT NOT NULL REFERENCES blobs (digest),
    position INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (digest, position)
) STRICT;
CREATE TABLE tool_version_files (
    version_number INTEGER NOT NULL REFERENCES tool_versions (number),
    path TEXT NOT NULL,
    sha256 TEXT NOT NULL REFERENCES blobs (digest),
    is_executable INTEGER NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (version_number, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX tool_version_files_by_blob ON tool_version_files (sha256);

CREATE TABLE lockfiles (
    set_name TEXT NOT NULL,
    key TEXT NOT NULL,
    content TEXT NOT NULL,
    revision INTEGER NOT NULL,
    user_name TEXT NOT NULL REFERENCES users (name),
    at TEXT NOT NULL,
    PRIMARY KEY (set_name, key)
) STRICT, WITHOUT ROWID;
-- Numbers that only grow.
CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO counters (name, value) VALUES ('lockfiles', 0);
