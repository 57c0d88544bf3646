//! Many names in little space: a million take some thirty megabytes.

use super::Form;

/// Names of items, each in a folder that has a number.
#[derive(Default)]
pub(super) struct Lot {
    names: String,
    /// By the number of their folder.
    spots: Vec<Vec<Spot>>,
}

/// Where a name stands, and what it names.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    start: u32,
    length: u8,
    pub(super) form: Form,
}

impl Lot {
    /// Adds a name. One that no file system could hold is passed over.
    pub(super) fn add(&mut self, folder: u32, name: &str, form: Form) {
        let (Ok(start), Ok(length)) = (u32::try_from(self.names.len()), u8::try_from(name.len())) else {
            return;
        };
        let folder = folder as usize;
        if self.spots.len() <= folder {
            self.spots.resize_with(folder + 1, Vec::new);
        }
        if let Some(spots) = self.spots.get_mut(folder) {
            self.names.push_str(name);
            spots.push(Spot { start, length, form });
        }
    }

    pub(super) fn name(&self, spot: Spot) -> &str {
        let start = spot.start as usize;
        self.names.get(start..start + usize::from(spot.length)).unwrap_or_default()
    }

    /// Pieces of at most `most` spots that lie in one folder, with its number.
    pub(super) fn pieces(&self, most: usize) -> Vec<(usize, &[Spot])> {
        let folders = self.spots.iter().enumerate();
        folders.flat_map(|(folder, spots)| spots.chunks(most).map(move |piece| (folder, piece))).collect()
    }
}
