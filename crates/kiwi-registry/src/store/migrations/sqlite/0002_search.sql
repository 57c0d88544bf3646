-- One row for every tool that can be found, of its newest version. The vector is nothing where no word is known.
CREATE TABLE embeddings (
    tool_number INTEGER PRIMARY KEY REFERENCES tools (number),
    embedder TEXT NOT NULL,
    is_public INTEGER NOT NULL,
    change INTEGER NOT NULL,
    vector BLOB
) STRICT;
CREATE INDEX embeddings_by_change ON embeddings (change);
CREATE VIRTUAL TABLE tool_words USING fts5 (names, words, content = '', contentless_delete = 1, tokenize = 'unicode61');
-- How many tools have a word.
CREATE VIRTUAL TABLE tool_vocabulary USING fts5vocab (tool_words, row);
INSERT INTO counters (name, value) VALUES ('embeddings', 0);
