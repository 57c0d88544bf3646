//! Finding tools: by words, by what they mean, and by name. Whoever asks ranks what is found among their own.

use kiwi_search::{Embedder as _, Item, StaticEmbedder};
use serde_json::json;
use std::collections::{HashMap, HashSet};

use super::Store;
use super::caller::{Caller, owned};
use super::database::{Engine, Sql, Transaction, Value, values};
use super::nearby::coarse;
use super::release::{digest, tool_id as read_id, version as read_version};
use super::tools::{Held, settle};
use super::words::{Telling, words};
use crate::error::RegistryError;
use crate::protocol::FoundTool;

/// Words of a tool that count.
const MOST_WORDS: usize = 1000;
/// Tools that are looked at again in one go after an upgrade.
const BATCH: i64 = 200;
/// What reciprocal ranks are counted from.
const RANK: f64 = 60.0;

const COUNT: &str = "UPDATE counters SET value = value + 1 WHERE name = 'embeddings' RETURNING value";
const EMBED: Sql = Sql::each(
    "INSERT INTO embeddings (tool_number, embedder, is_public, change, vector) VALUES ($1, $2, $3, $4, unhex($5)) \
     ON CONFLICT (tool_number) DO UPDATE SET embedder = excluded.embedder, is_public = excluded.is_public, \
     change = excluded.change, vector = excluded.vector",
    "INSERT INTO embeddings (tool_number, embedder, is_public, change, vector, words) VALUES ($1, $2, $3, $4, \
     CAST($5 AS vector), setweight(to_tsvector('simple', $6), 'A') || setweight(to_tsvector('simple', $7), 'B')) \
     ON CONFLICT (tool_number) DO UPDATE SET embedder = excluded.embedder, is_public = excluded.is_public, \
     change = excluded.change, vector = excluded.vector, words = excluded.words",
);
const FORGET: Sql = Sql::each(
    "UPDATE embeddings SET vector = NULL, is_public = 0, change = $2 WHERE tool_number = $1",
    "UPDATE embeddings SET vector = NULL, is_public = 0, change = $2, words = '' WHERE tool_number = $1",
);
/// The best by words, of which those that the caller may not find are left out: a private tool is found by its owners alone.
const BY_WORDS: Sql = Sql::each(
    concat!(
        "SELECT t.number FROM (SELECT rowid AS number FROM tool_words WHERE tool_words MATCH $3 \
         ORDER BY bm25(tool_words, 4.0, 1.0) LIMIT 1000) m JOIN tools t ON t.number = m.number WHERE t.visibility = 'public' OR ",
        owned!(),
        " LIMIT $4"
    ),
    concat!(
        "SELECT t.number FROM (SELECT e.tool_number AS number, ts_rank(e.words, q) AS rank FROM embeddings e, \
         to_tsquery('simple', $3) q WHERE e.words @@ q ORDER BY rank DESC, number LIMIT 1000) m \
         JOIN tools t ON t.number = m.number WHERE t.visibility = 'public' OR ",
        owned!(),
        " ORDER BY m.rank DESC, t.number LIMIT $4"
    ),
);
const BY_NAME: &str = concat!(
    "SELECT t.number FROM tools t WHERE t.tool_id = $3 AND (t.visibility = 'public' OR ",
    owned!(),
    ")"
);
const OWN: &str = "SELECT t.number FROM tools t WHERE t.visibility <> 'public' AND (t.owner = $1 OR t.namespace IN \
     (SELECT namespace FROM namespace_owners WHERE user_name = $1))";
const NEAR_PUBLIC: &str = "SELECT tool_number FROM embeddings WHERE is_public = 1 AND vector IS NOT NULL \
     ORDER BY vector <=> CAST($1 AS vector) LIMIT $2";
const NEAR_OWN: &str = concat!(
    "SELECT e.tool_number FROM tools t JOIN embeddings e ON e.tool_number = t.number WHERE t.visibility <> 'public' \
     AND e.vector IS NOT NULL AND ",
    owned!(),
    " ORDER BY e.vector <=> CAST($3 AS vector) LIMIT $4"
);
/// A hit is judged when it is shown, whatever the legs said.
const SHOWN: Sql = Sql::each(
    concat!(
        "SELECT t.number, t.tool_id, v.version, v.integrity, v.manifest FROM tools t JOIN tool_versions v \
         ON v.tool_id = t.tool_id AND v.is_latest = 1 WHERE t.number IN (SELECT value FROM json_each($3)) AND \
         (t.visibility = 'public' OR ",
        owned!(),
        ")"
    ),
    concat!(
        "SELECT t.number, t.tool_id, v.version, v.integrity, v.manifest FROM tools t JOIN tool_versions v \
         ON v.tool_id = t.tool_id AND v.is_latest = 1 WHERE t.number IN (SELECT CAST(json_array_elements_text(CAST($3 AS json)) \
         AS bigint)) AND (t.visibility = 'public' OR ",
        owned!(),
        ")"
    ),
);

impl Store {
    /// Tools that a text may mean, best first.
    pub async fn search(
        &self,
        caller: &Caller,
        text: &str,
        most: usize,
    ) -> Result<Vec<FoundTool>, RegistryError> {
        let limit = i64::try_from(most).unwrap_or(i64::MAX);
        let name = self.numbers(BY_NAME, caller.values([Value::from(text.trim().replace('\0', ""))])).await?;
        let vector = StaticEmbedder::new().vector(text);
        let (by_words, by_meaning) =
            tokio::join!(self.by_words(caller, text, limit), self.near(caller, vector, most));
        let (by_words, by_meaning) = (by_words?, by_meaning?);
        let order = merge(&name, &[by_words, by_meaning], most);
        let rows = self.database.rows(SHOWN, caller.values([Value::from(json!(order).to_string())])).await?;
        let mut found = HashMap::with_capacity(rows.len());
        for mut row in rows {
            let number = row.integer()?;
            let hit = FoundTool {
                tool_id: read_id(&row.text()?)?,
                version: read_version(&row.text()?)?,
                integrity: digest(&row.text()?)?,
                manifest: serde_json::from_str(&row.text()?).map_err(RegistryError::broken)?,
            };
            found.insert(number, hit);
        }
        Ok(order.iter().filter_map(|number| found.remove(number)).collect())
    }

    async fn numbers(&self, sql: impl Into<Sql>, values: Vec<Value>) -> Result<Vec<i64>, RegistryError> {
        let rows = self.database.rows(sql, values).await?;
        rows.into_iter().map(|mut row| row.integer()).collect()
    }

    /// The leg of words.
    async fn by_words(&self, caller: &Caller, text: &str, limit: i64) -> Result<Vec<i64>, RegistryError> {
        let any = |words: &[String], mark: char, between: &str| {
            words.iter().map(|word| format!("{mark}{word}{mark}")).collect::<Vec<_>>().join(between)
        };
        let query = match (self.telling(text).await?, self.engine()) {
            (Telling::Words(words), _) if words.is_empty() => return Ok(Vec::new()),
            (Telling::Words(words), Engine::Sqlite) => any(&words, '"', " OR "),
            (Telling::Words(words), Engine::Postgres) => any(&words, '\'', " | "),
            (Telling::Name(word), Engine::Sqlite) => format!("names : \"{word}\""),
            (Telling::Name(word), Engine::Postgres) => format!("'{word}':A"),
        };
        self.numbers(BY_WORDS, caller.values([Value::from(query), Value::from(limit)])).await
    }

    /// The leg of meaning.
    async fn near(&self, caller: &Caller, vector: Vec<f32>, most: usize) -> Result<Vec<i64>, RegistryError> {
        if !vector.iter().any(|number| *number != 0.0) {
            return Ok(Vec::new());
        }
        let limit = i64::try_from(most).unwrap_or(i64::MAX);
        if self.engine() == Engine::Postgres {
            let text = vector_text(&vector);
            let mut near = self.numbers(NEAR_PUBLIC, values![&text, limit]).await?;
            if caller.is_known() {
                let own = caller.values([Value::from(text), Value::from(limit)]);
                near.extend(self.numbers(NEAR_OWN, own).await?);
            }
            return Ok(near);
        }
        self.learn().await?;
        let own: HashSet<i64> = if caller.is_known() {
            self.numbers(OWN, values![&caller.user]).await?.into_iter().collect()
        } else {
            HashSet::new()
        };
        let (nearby, sees_all) = (std::sync::Arc::clone(&self.nearby), caller.is_admin());
        tokio::task::spawn_blocking(move || nearby.nearest(&vector, most, sees_all, &own))
            .await
            .map_err(RegistryError::broken)
    }

    /// Reads the vectors that changed since the last time.
    async fn learn(&self) -> Result<(), RegistryError> {
        let since = self.nearby.change();
        let last =
            self.database.row("SELECT value FROM counters WHERE name = 'embeddings'", values![]).await?;
        let last = last.ok_or_else(|| RegistryError::broken("no counter"))?.integer()?;
        if last <= since {
            return Ok(());
        }
        let select = "SELECT tool_number, is_public, vector IS NOT NULL, coalesce(vector, x'') FROM embeddings \
             WHERE change > $1 AND change <= $2";
        let rows = self.database.rows(select, values![since, last]).await?;
        let read = |mut row: super::database::Row| {
            let (tool, is_public, is_there, bytes) =
                (row.integer()?, row.truth()?, row.truth()?, row.bytes()?);
            Ok((tool, is_public, is_there.then_some(bytes)))
        };
        self.nearby.learn(last, rows.into_iter().map(read).collect::<Result<_, RegistryError>>()?)
    }

    /// Makes findable what is not, or was by another embedder: after an upgrade.
    pub(super) async fn catch_up(&self) -> Result<(), RegistryError> {
        let behind = "SELECT t.number, t.tool_id FROM tools t JOIN tool_versions v ON v.tool_id = t.tool_id AND v.is_latest = 1 \
             WHERE NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.tool_number = t.number AND e.embedder = $1) LIMIT $2";
        let touch = "UPDATE tools SET revision = revision + 1 WHERE number = $1 RETURNING visibility";
        let embedder = StaticEmbedder::new();
        loop {
            let rows = self.database.rows(behind, values![embedder.id(), BATCH]).await?;
            if rows.is_empty() {
                return Ok(());
            }
            let mut transaction = self.database.begin().await?;
            for mut row in rows {
                let (number, id) = (row.integer()?, read_id(&row.text()?)?);
                let row = transaction.row(touch, values![number]).await?;
                let visibility = row.map(|mut row| row.text()).transpose()?;
                let held = Held { number, is_public: visibility.as_deref() == Some("public") };
                settle(&mut transaction, &id, &held).await?;
            }
            transaction.commit().await?;
        }
    }
}

/// Makes a tool findable by what its newest version says.
pub(super) async fn remember(
    transaction: &mut Transaction,
    held: &Held,
    item: &Item,
) -> Result<(), RegistryError> {
    let change = count(transaction).await?;
    let embedder = StaticEmbedder::new();
    let vector = embedder.vector(&item.embedded_text());
    let names = words(&item.names().collect::<Vec<_>>().join(" "), MOST_WORDS).join(" ");
    let rest = format!("{} {} {}", item.embedded_text(), item.tags.join(" "), item.category);
    let rest = words(&rest, MOST_WORDS).join(" ");
    let is_known = vector.iter().any(|number| *number != 0.0);
    match transaction.engine() {
        Engine::Sqlite => {
            let hex = coarse(&vector).map(|bytes| {
                use std::fmt::Write as _;
                bytes.iter().fold(String::with_capacity(512), |mut text, byte| {
                    let _ = write!(text, "{byte:02x}");
                    text
                })
            });
            transaction.rows(EMBED, values![held.number, embedder.id(), held.is_public, change, hex]).await?;
            transaction.rows("DELETE FROM tool_words WHERE rowid = $1", values![held.number]).await?;
            let insert = "INSERT INTO tool_words (rowid, names, words) VALUES ($1, $2, $3)";
            transaction.rows(insert, values![held.number, names, rest]).await.map(drop)
        }
        Engine::Postgres => {
            let vector = is_known.then(|| vector_text(&vector));
            let values = values![held.number, embedder.id(), held.is_public, change, vector, names, rest];
            transaction.rows(EMBED, values).await.map(drop)
        }
    }
}

/// Makes a tool findable by everybody, or by its owners alone.
pub(super) async fn show(
    transaction: &mut Transaction,
    number: i64,
    is_public: bool,
) -> Result<(), RegistryError> {
    let change = count(transaction).await?;
    let update = "UPDATE embeddings SET is_public = $2, change = $3 WHERE tool_number = $1";
    transaction.rows(update, values![number, is_public, change]).await.map(drop)
}

/// Makes a tool findable by nobody: no version of it is left to find.
pub(super) async fn forget(transaction: &mut Transaction, number: i64) -> Result<(), RegistryError> {
    let change = count(transaction).await?;
    transaction.rows(FORGET, values![number, change]).await?;
    if transaction.engine() == Engine::Sqlite {
        transaction.rows("DELETE FROM tool_words WHERE rowid = $1", values![number]).await?;
    }
    Ok(())
}

async fn count(transaction: &mut Transaction) -> Result<i64, RegistryError> {
    // Where the database has an index of its own, nobody asks what changed, and publishers need not wait for each other.
    if transaction.engine() == Engine::Postgres {
        return Ok(0);
    }
    let row = transaction.row(COUNT, values![]).await?;
    row.ok_or_else(|| RegistryError::broken("no counter"))?.integer()
}

/// One list of several, by how early each is in each; the name itself first.
fn merge(first: &[i64], legs: &[Vec<i64>], most: usize) -> Vec<i64> {
    let mut scores: HashMap<i64, f64> = HashMap::new();
    for leg in legs {
        let mut rank = RANK;
        for number in leg {
            rank += 1.0;
            *scores.entry(*number).or_default() += rank.recip();
        }
    }
    for number in first {
        scores.insert(*number, f64::MAX);
    }
    let mut order: Vec<(i64, f64)> = scores.into_iter().collect();
    order.sort_unstable_by(|(a, one), (b, other)| other.total_cmp(one).then(a.cmp(b)));
    order.into_iter().take(most).map(|(number, _)| number).collect()
}

/// As pgvector reads it.
fn vector_text(vector: &[f32]) -> String {
    format!("[{}]", vector.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
}
