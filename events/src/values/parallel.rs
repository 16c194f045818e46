//! Work on all CPUs. Rayon's own functions are compiled for each closure that they are given, several times over, with all that the closure
//! does in each copy: a seventh of this crate's code. Here they are compiled once, and call what is to be done by its address. That is
//! nothing beside the segment that one piece of work reads.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// What `work` makes of each of `items`, in their order; several at a time.
pub fn map<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    // not worth the way to another thread and back
    if let [one] = items {
        return vec![work(one)];
    }
    let places = Places::new(items.len());
    for_each(items.len(), &|at| places.put(at, work(&items[at])));
    places.taken()
}

/// What each thread's `work` makes, in the threads' order.
pub(crate) fn on_each_thread<T: Send>(work: impl Fn() -> T + Sync) -> Vec<T> {
    let places = Places::new(rayon::current_num_threads());
    on_threads(&|thread| places.put(thread, work()));
    places.taken()
}

/// What `one` and `other` make, at the same time if another thread has time.
pub fn both<A: Send, B: Send>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B + Send) -> (A, B) {
    let (mut one, mut other) = (Once::new(one), Once::new(other));
    join(&mut || one.run(), &mut || other.run());
    (one.made(), other.made())
}

fn for_each(count: usize, work: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().for_each(work);
}

fn on_threads(work: &(dyn Fn(usize) + Sync)) {
    rayon::broadcast(|thread| work(thread.index()));
}

fn join(one: &mut (dyn FnMut() + Send), other: &mut (dyn FnMut() + Send)) {
    rayon::join(one, other);
}

/// Where results go that are made in any order.
struct Places<T>(Vec<Mutex<Option<T>>>);

impl<T> Places<T> {
    fn new(count: usize) -> Self {
        Self((0..count).map(|_| Mutex::new(None)).collect())
    }

    fn put(&self, at: usize, made: T) {
        if let Some(place) = self.0.get(at) {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        }
    }

    fn taken(self) -> Vec<T> {
        self.0.into_iter().filter_map(|place| place.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
    }
}

/// A closure, and what it made.
enum Once<F, T> {
    Waits(F),
    Made(T),
    Runs,
}

impl<F: FnOnce() -> T, T> Once<F, T> {
    fn new(what: F) -> Self {
        Self::Waits(what)
    }

    fn run(&mut self) {
        if let Self::Waits(what) = std::mem::replace(self, Self::Runs) {
            *self = Self::Made(what());
        }
    }

    fn made(self) -> T {
        match self {
            Self::Made(made) => made,
            Self::Waits(what) => what(),
            Self::Runs => unreachable!("what panics does not come back"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order() {
        let squares: Vec<u64> = (0..1000).map(|n| n * n).collect();
        for count in [0, 1, 2, 7, 1000] {
            let numbers: Vec<u64> = (0..count).collect();
            assert_eq!(map(&numbers, |n| n * n), squares[..numbers.len()]);
        }
    }

    #[test]
    fn both_are_made() {
        let text = String::from("a");
        let (one, other) = both(|| text + "b", || both(|| 1, || 2_u8));
        assert_eq!((&*one, other), ("ab", (1, 2)));
    }

    #[test]
    fn every_thread_works() {
        let threads = on_each_thread(|| std::thread::current().id());
        assert_eq!(threads.len(), rayon::current_num_threads());
        assert_eq!(threads.iter().collect::<std::collections::HashSet<_>>().len(), threads.len());
    }
}
