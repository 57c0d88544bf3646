//! Which documents count at all.

use std::collections::HashSet;
use tantivy::query::{BooleanQuery, EnableScoring, Query as _, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{BitSet, DocId, DocSet as _, TERMINATED, Term};

use super::Filter;
use crate::error::SearchError;
use crate::index::View;
use crate::text::{SUPPORT, category_facet, kind_facet, tag_facet, type_facet};

/// For each tier and segment, the documents that count.
pub(super) struct Allowed(Vec<Vec<Segment>>);

enum Segment {
    /// All but a few.
    AllBut(HashSet<DocId>),
    Only(BitSet),
}

impl Allowed {
    pub fn of(tiers: &[&View], filter: &Filter) -> Result<Self, SearchError> {
        let tier = |view: &&View| select(view, filter).map_err(|error| view.damaged(&error));
        Ok(Self(tiers.iter().map(tier).collect::<Result<_, _>>()?))
    }

    /// Whether a document counts, deleted ones aside.
    pub fn counts(&self, tier: usize, segment: usize, document: DocId) -> bool {
        match self.0.get(tier).and_then(|segments| segments.get(segment)) {
            None => false,
            Some(Segment::AllBut(few)) => few.is_empty() || !few.contains(&document),
            Some(Segment::Only(documents)) => documents.contains(document),
        }
    }
}

/// The terms of which a document must have one, group by group.
fn groups(filter: &Filter) -> Vec<Vec<String>> {
    let mut groups = Vec::new();
    if !filter.kinds.is_empty() {
        groups.push(filter.kinds.iter().map(|kind| kind_facet(*kind)).collect());
    }
    groups.extend(filter.category.iter().map(|category| vec![category_facet(category)]));
    groups.extend(filter.tags.iter().map(|tag| vec![tag_facet(tag)]));
    groups.extend(filter.tool_type.iter().map(|tool_type| vec![type_facet(tool_type)]));
    groups
}

fn select(view: &View, filter: &Filter) -> tantivy::Result<Vec<Segment>> {
    let groups = groups(filter);
    // Who asks for a type of tool may mean what others run on.
    let support = if filter.tool_type.is_some() { None } else { Some(SUPPORT.to_owned()) };
    let readers = view.searcher.segment_readers().iter();
    readers
        .map(|reader| {
            let documents = |terms: &[String]| {
                let query = |term: &String| {
                    let term = Term::from_field_text(view.fields.facet, term);
                    Box::new(TermQuery::new(term, IndexRecordOption::Basic)) as Box<dyn tantivy::query::Query>
                };
                let union = BooleanQuery::union(terms.iter().map(query).collect());
                let weight = union.weight(EnableScoring::disabled_from_searcher(&view.searcher))?;
                let mut scorer = weight.scorer(reader, 1.0)?;
                let mut found = Vec::new();
                while scorer.doc() != TERMINATED {
                    found.push(scorer.doc());
                    scorer.advance();
                }
                Ok::<_, tantivy::TantivyError>(found)
            };
            let aside: HashSet<DocId> = match &support {
                Some(term) => documents(std::slice::from_ref(term))?.into_iter().collect(),
                None => HashSet::new(),
            };
            if groups.is_empty() {
                return Ok(Segment::AllBut(aside));
            }
            let mut only: Option<BitSet> = None;
            for group in &groups {
                let mut of_group = BitSet::with_max_value(reader.max_doc());
                for document in documents(group)? {
                    let before = only.as_ref().is_none_or(|only| only.contains(document));
                    if before && !aside.contains(&document) {
                        of_group.insert(document);
                    }
                }
                only = Some(of_group);
            }
            Ok(Segment::Only(only.unwrap_or_else(|| BitSet::with_max_value(reader.max_doc()))))
        })
        .collect()
}
