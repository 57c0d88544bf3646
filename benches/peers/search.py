"""Times other ways to find items: SQLite's full-text index, usearch and ChromaDB.

Run by `cargo xtask bench search` with the interpreter of the peers' own virtual environment:

    python search.py --scratch DIR

The folder holds what the Rust side wrote: `items.jsonl` (one object with `text` a line), `questions` (one a line),
`vectors.f32` and `asked.f32` (rows of 256 little-endian floats of length 1). Prints one JSON object: for each peer the
seconds that building took, the time of each question in microseconds, and for the two that hold vectors the share of the
ten nearest that was found.
"""

import argparse
import json
import re
import sqlite3
import time
from pathlib import Path

import numpy

DIMENSIONS = 256
SHOWN = 10
WARM_UP = 20


def timed(ask, questions, warm_up=WARM_UP):
    """The time of each question after a few that do not count, and all answers."""
    for question in questions[:warm_up]:
        ask(question)
    times, answers = [], []
    for question in questions:
        since = time.perf_counter()
        answers.append(ask(question))
        times.append((time.perf_counter() - since) * 1e6)
    return times, answers


def recall(answers, vectors, asked):
    """Which share of the ten nearest was found; of equals any will do."""
    met = 0
    for answer, question in zip(answers, asked):
        likeness = vectors @ question
        least = numpy.partition(likeness, -SHOWN)[-SHOWN] - 1e-6
        met += int((likeness[[int(number) for number in answer]] >= least).sum())
    return met / (SHOWN * len(asked))


def sqlite(folder, every):
    """Full-text search: any word of the question may occur, ranked by BM25."""
    file = folder / "fts.sqlite"
    since = time.perf_counter()
    database = sqlite3.connect(file)
    database.execute("pragma journal_mode = off")
    database.execute("pragma synchronous = off")
    database.execute("create virtual table items using fts5(text)")
    with open(folder / "items.jsonl", encoding="utf-8") as lines:
        rows = ((json.loads(line)["text"],) for line in lines)
        database.executemany("insert into items(text) values (?)", rows)
    database.execute("insert into items(items) values ('optimize')")
    database.commit()
    built = time.perf_counter() - since

    def ask(question):
        words = list(dict.fromkeys(re.findall(r"\w+", question.lower())))
        match = " OR ".join(f'"{word}"' for word in words) or '""'
        # Ordering by `rank` is ordering by bm25(), and the faster way to write it.
        return database.execute(
            "select rowid from items where items match ? order by rank limit ?", (match, SHOWN)
        ).fetchall()

    questions = (folder / "questions").read_text(encoding="utf-8").splitlines()[::every]
    times, _ = timed(ask, questions, 1)
    return {
        "version": sqlite3.sqlite_version,
        "build_s": built,
        "bytes": file.stat().st_size,
        "times_us": times,
    }


def with_usearch(vectors, asked):
    import usearch
    from usearch.index import Index

    since = time.perf_counter()
    index = Index(ndim=DIMENSIONS, metric="ip", dtype="f32")
    index.add(numpy.arange(len(vectors)), vectors)
    built = time.perf_counter() - since
    times, answers = timed(lambda vector: index.search(vector, SHOWN).keys, asked)
    return {
        "version": usearch.__version__,
        "build_s": built,
        "times_us": times,
        "recall": recall(answers, vectors, asked),
    }


def with_chromadb(vectors, asked):
    import chromadb
    from chromadb.config import Settings

    since = time.perf_counter()
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    items = client.create_collection("items", metadata={"hnsw:space": "ip"}, embedding_function=None)
    step = min(5000, client.get_max_batch_size())
    for start in range(0, len(vectors), step):
        batch = vectors[start : start + step]
        items.add(ids=[str(start + at) for at in range(len(batch))], embeddings=batch)
    built = time.perf_counter() - since

    def ask(vector):
        return items.query(query_embeddings=[vector], n_results=SHOWN, include=["distances"])["ids"][0]

    times, answers = timed(ask, asked)
    return {
        "version": chromadb.__version__,
        "build_s": built,
        "times_us": times,
        "recall": recall(answers, vectors, asked),
    }


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--scratch", type=Path, required=True)
    # A question of many words takes SQLite long: every so many of them are asked.
    arguments.add_argument("--every", type=int, default=10)
    options = arguments.parse_args()
    folder = options.scratch
    vectors = numpy.fromfile(folder / "vectors.f32", dtype="<f4").reshape(-1, DIMENSIONS)
    asked = numpy.fromfile(folder / "asked.f32", dtype="<f4").reshape(-1, DIMENSIONS)
    said = {
        "usearch": with_usearch(vectors, asked),
        "chromadb": with_chromadb(vectors, asked),
        "sqlite": sqlite(folder, options.every),
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main()
