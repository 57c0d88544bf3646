-- Who may do what.
CREATE TABLE users (
    name text COLLATE "C" PRIMARY KEY,
    created_at text COLLATE "C" NOT NULL
);
-- A token is known by its digest alone.
CREATE TABLE tokens (
    id text COLLATE "C" PRIMARY KEY,
    digest text COLLATE "C" NOT NULL,
    user_name text COLLATE "C" NOT NULL REFERENCES users (name),
    scopes text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    expires_at text COLLATE "C"
);
CREATE TABLE namespaces (
    name text COLLATE "C" PRIMARY KEY,
    created_at text COLLATE "C" NOT NULL
);
CREATE TABLE namespace_owners (
    namespace text COLLATE "C" NOT NULL REFERENCES namespaces (name),
    user_name text COLLATE "C" NOT NULL REFERENCES users (name),
    PRIMARY KEY (namespace, user_name)
);
CREATE INDEX namespace_owners_by_user ON namespace_owners (user_name);

-- A tool belongs to the owners of its namespace, or to the one user who published it first.
CREATE TABLE tools (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tool_id text COLLATE "C" NOT NULL UNIQUE,
    namespace text COLLATE "C" REFERENCES namespaces (name),
    owner text COLLATE "C" REFERENCES users (name),
    visibility text COLLATE "C" NOT NULL CHECK (visibility IN ('public', 'unlisted', 'private')),
    description text COLLATE "C" NOT NULL,
    tool_type text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    created_at text COLLATE "C" NOT NULL
);
CREATE INDEX tools_by_namespace ON tools (namespace);
CREATE INDEX tools_by_owner ON tools (owner);
-- Versions that differ only in what stands behind a `+` are one: nobody could tell which is newer.
CREATE TABLE tool_versions (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tool_id text COLLATE "C" NOT NULL REFERENCES tools (tool_id),
    version text COLLATE "C" NOT NULL,
    version_key text COLLATE "C" NOT NULL,
    core_key text COLLATE "C" NOT NULL,
    is_early bigint NOT NULL,
    integrity text COLLATE "C" NOT NULL,
    manifest text COLLATE "C" NOT NULL,
    tool_type text COLLATE "C" NOT NULL,
    description text COLLATE "C" NOT NULL,
    executor text COLLATE "C",
    executor_id text COLLATE "C",
    executor_from text COLLATE "C",
    executor_below text COLLATE "C",
    executor_early text COLLATE "C",
    is_latest bigint NOT NULL,
    yanked text COLLATE "C",
    published_at text COLLATE "C" NOT NULL,
    publisher text COLLATE "C" NOT NULL REFERENCES users (name),
    attempt text COLLATE "C",
    signature_key text COLLATE "C",
    signature text COLLATE "C",
    UNIQUE (tool_id, version_key)
);
CREATE INDEX tool_versions_latest ON tool_versions (tool_id) WHERE is_latest = 1;

CREATE TABLE blobs (
    digest text COLLATE "C" PRIMARY KEY,
    size bigint NOT NULL,
    place text COLLATE "C" NOT NULL CHECK (place IN ('database', 'folder')),
    created_at text COLLATE "C" NOT NULL
);
-- Who has shown that they have the bytes: knowing a digest is not enough to publish what it stands for.
CREATE TABLE blob_uploads (
    digest text COLLATE "C" NOT NULL REFERENCES blobs (digest),
    user_name text COLLATE "C" NOT NULL REFERENCES users (name),
    PRIMARY KEY (digest, user_name)
);
CREATE TABLE blob_pieces (
    digest text COLLATE "C" NOT NULL REFERENCES blobs (digest),
    position bigint NOT NULL,
    bytes bytea STORAGE EXTERNAL NOT NULL,
    PRIMARY KEY (digest, position)
);
CREATE TABLE tool_version_files (
    version_number bigint NOT NULL REFERENCES tool_versions (number),
    path text COLLATE "C" NOT NULL,
    sha256 text COLLATE "C" NOT NULL REFERENCES blobs (digest),
    is_executable bigint NOT NULL,
    size bigint NOT NULL,
    PRIMARY KEY (version_number, path)
);
CREATE INDEX tool_version_files_by_blob ON tool_version_files (sha256);

CREATE TABLE lockfiles (
    set_name text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    content text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    user_name text COLLATE "C" NOT NULL REFERENCES users (name),
    at text COLLATE "C" NOT NULL,
    PRIMARY KEY (set_name, key)
);
-- Numbers that only grow.
CREATE TABLE counters (
    name text COLLATE "C" PRIMARY KEY,
    value bigint NOT NULL
);
INSERT INTO counters (name, value) VALUES ('lockfiles', 0);
