-- One row for every tool that can be found, of its newest version. The vector is nothing where no word is known.
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE embeddings (
    tool_number bigint PRIMARY KEY REFERENCES tools (number),
    embedder text COLLATE "C" NOT NULL,
    is_public bigint NOT NULL,
    change bigint NOT NULL,
    vector vector(256),
    words tsvector NOT NULL
);
CREATE INDEX embeddings_near ON embeddings USING hnsw (vector vector_cosine_ops) WHERE is_public = 1;
CREATE INDEX embeddings_words ON embeddings USING gin (words);
INSERT INTO counters (name, value) VALUES ('embeddings', 0);
