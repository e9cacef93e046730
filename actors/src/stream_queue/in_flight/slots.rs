//! What is under way, each with a waker of its own: only what has moved is looked at.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use futures_util::task::AtomicWaker;

/// Values in numbered slots, and which of them were woken.
pub(super) struct Slots<S> {
    slots: Vec<Slot<S>>,
    free: Vec<usize>,
    woken: Arc<Woken>,
}

struct Slot<S> {
    value: Option<S>,
    waker: Arc<SlotWaker>,
}

/// The slots that were woken, in that order, and who looks at them.
#[derive(Default)]
struct Woken {
    slots: Mutex<VecDeque<usize>>,
    task: AtomicWaker,
}

struct SlotWaker {
    slot: usize,
    /// It stands in the list.
    is_woken: AtomicBool,
    woken: Arc<Woken>,
}

impl Wake for SlotWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_woken.swap(true, AcqRel) {
            self.woken.slots.lock().unwrap_or_else(PoisonError::into_inner).push_back(self.slot);
            self.woken.task.wake();
        }
    }
}

impl<S> Default for Slots<S> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), woken: Arc::default() }
    }
}

impl<S> Slots<S> {
    /// Who is to be woken when a slot is.
    pub(super) fn register(&self, task: &Waker) {
        self.woken.task.register(task);
    }

    /// Puts a value in a slot, which counts as woken.
    pub(super) fn insert(&mut self, value: S) {
        let slot = self.free.pop().unwrap_or_else(|| {
            let (slot, woken) = (self.slots.len(), Arc::clone(&self.woken));
            let waker = Arc::new(SlotWaker { slot, is_woken: AtomicBool::new(false), woken });
            self.slots.push(Slot { value: None, waker });
            slot
        });
        self.slots[slot].value = Some(value);
        self.slots[slot].waker.wake_by_ref();
    }

    /// The next slot that was woken, with the waker to poll its value with. It may be woken for a value that it held
    /// before.
    pub(super) fn next_woken(&mut self) -> Option<(usize, Waker)> {
        loop {
            let slot = self.woken.slots.lock().unwrap_or_else(PoisonError::into_inner).pop_front()?;
            let waker = &self.slots[slot].waker;
            // first: what wakes it from now on does so again
            waker.is_woken.store(false, Release);
            if self.slots[slot].value.is_some() {
                return Some((slot, Waker::from(Arc::clone(waker))));
            }
        }
    }

    pub(super) fn get(&self, slot: usize) -> Option<&S> {
        self.slots.get(slot)?.value.as_ref()
    }

    /// All, by slot.
    pub(super) fn iter(&self) -> impl Iterator<Item = &S> {
        self.slots.iter().filter_map(|slot| slot.value.as_ref())
    }

    pub(super) fn get_mut(&mut self, slot: usize) -> Option<&mut S> {
        self.slots.get_mut(slot)?.value.as_mut()
    }

    /// Empties a slot.
    pub(super) fn take(&mut self, slot: usize) -> Option<S> {
        let value = self.slots.get_mut(slot)?.value.take()?;
        self.free.push(slot);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn woken(slots: &mut Slots<char>) -> Vec<char> {
        let mut woken = Vec::new();
        while let Some((slot, _)) = slots.next_woken() {
            woken.push(*slots.get_mut(slot).expect("an empty one is left out"));
        }
        woken
    }

    #[test]
    fn only_slots_that_were_woken_are_looked_at_once_and_in_their_order() {
        let mut slots = Slots::default();
        "abc".chars().for_each(|value| slots.insert(value));
        let wakers: Vec<_> = (0..3).map(|_| slots.next_woken().expect("a new one is woken").1).collect();
        assert_eq!(woken(&mut slots), []);
        for which in [2, 0, 2] {
            wakers[which].wake_by_ref();
        }
        assert_eq!(woken(&mut slots), ['c', 'a']);
    }

    #[test]
    fn a_slot_is_used_again_and_a_late_waker_of_its_last_value_does_no_harm() {
        let mut slots = Slots::default();
        slots.insert('a');
        let (slot, late) = slots.next_woken().expect("a new one is woken");
        late.wake_by_ref();
        assert_eq!(slots.take(slot), Some('a'));
        assert_eq!((woken(&mut slots), slots.take(slot)), (vec![], None));
        slots.insert('b');
        late.wake_by_ref();
        assert_eq!((woken(&mut slots), slots.slots.len()), (vec!['b'], 1));
    }
}
