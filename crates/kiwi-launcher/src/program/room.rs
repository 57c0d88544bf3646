//! Memory for what a launcher has to remember: little, and most of it for all its life.
//!
//! Pieces come in sizes that are powers of two. Who gives one back leaves it for the next who asks for that size; what is
//! larger than all of them comes from the kernel and goes back there.
#![expect(unsafe_code, reason = "hands out memory")]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};
use kiwi_launcher::kernel::memory;

/// The smallest piece has 16 bytes, the largest 32 KiB.
const SMALLEST: usize = 16;
const SIZES: usize = 12;
/// So much is asked of the kernel at once.
const CHUNK: usize = 128 << 10;

struct Room(UnsafeCell<State>);

struct State {
    /// Of each size the piece that was given back last; in it is where the one before it is.
    free: [*mut Piece; SIZES],
    /// What has not been handed out yet of the last chunk.
    next: *mut u8,
    left: usize,
}

struct Piece {
    before: *mut Piece,
}

// SAFETY: this program has one thread, and a helper beside it asks for no memory.
unsafe impl Sync for Room {}

#[global_allocator]
static ROOM: Room = Room(UnsafeCell::new(State { free: [null_mut(); SIZES], next: null_mut(), left: 0 }));

/// Which size serves this, if one does.
fn size(layout: Layout) -> Option<usize> {
    let wanted = layout.size().max(layout.align()).max(SMALLEST).checked_next_power_of_two()?;
    let size = (wanted.trailing_zeros() - SMALLEST.trailing_zeros()) as usize;
    (size < SIZES).then_some(size)
}

// SAFETY: pieces do not overlap, and are as large as asked for; their places are multiples of their size.
unsafe impl GlobalAlloc for Room {
    // SAFETY: as the trait has it.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: one thread, and nothing below calls this again.
        let state = unsafe { &mut *self.0.get() };
        let Some(size) = size(layout) else {
            return memory::take(layout.size()).map_or(null_mut(), NonNull::as_ptr);
        };
        if let Some(piece) = state.free.get_mut(size).filter(|piece| !piece.is_null()) {
            let found = *piece;
            // SAFETY: it was given back, and this was written there.
            *piece = unsafe { (*found).before };
            return found.cast();
        }
        state.cut(SMALLEST << size)
    }

    // SAFETY: as the trait has it.
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: one thread, and nothing below calls this again.
        let state = unsafe { &mut *self.0.get() };
        match size(layout).and_then(|size| state.free.get_mut(size)) {
            Some(free) => {
                #[expect(clippy::cast_ptr_alignment, reason = "pieces lie at multiples of their size")]
                let piece = place.cast::<Piece>();
                // SAFETY: nobody has it any more, and the smallest is large enough.
                unsafe { piece.write(Piece { before: *free }) };
                *free = piece;
            }
            // SAFETY: it came from there, with this length.
            None => unsafe { memory::give_back(place, layout.size()) },
        }
    }
}

impl State {
    fn cut(&mut self, size: usize) -> *mut u8 {
        let gap = self.next.addr().wrapping_neg() & (size - 1);
        if self.left < gap + size {
            // What is left of the old one is lost; it is less than the largest piece.
            let Some(chunk) = memory::take(CHUNK) else { return null_mut() };
            self.next = chunk.as_ptr();
            self.left = CHUNK;
            return self.cut(size);
        }
        // SAFETY: there is so much left.
        let piece = unsafe { self.next.add(gap) };
        // SAFETY: likewise.
        self.next = unsafe { piece.add(size) };
        self.left -= gap + size;
        piece
    }
}
