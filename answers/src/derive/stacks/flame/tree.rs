//! Stacks as frames that lie above each other.

/// A stack with its weight.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Weighted {
    /// Names from the outermost on, between semicolons.
    pub stack: String,
    /// Weight in the unit of the picture.
    pub weight: u64,
    /// How much more that is than in the first of two tapes; None: there is one tape.
    pub difference: Option<i128>,
}

/// One rectangle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Name of the function, `_[k]` behind one of the kernel.
    pub name: String,
    /// Number of frames below it.
    pub depth: usize,
    /// Weight left of it.
    pub from: u128,
    /// Weight of the frame.
    pub weight: u128,
    /// The difference, as that of [`Weighted`].
    pub difference: Option<i128>,
}

/// The frames of `stacks`, each before those above it and right of it.
pub(super) fn frames(mut stacks: Vec<Weighted>) -> Vec<Frame> {
    stacks.sort_by(|a, b| a.stack.split(';').cmp(b.stack.split(';')));
    let mut frames: Vec<Frame> = Vec::new();
    // indices of the frames of the stack before
    let mut open: Vec<usize> = Vec::new();
    let mut from = 0;
    for Weighted { stack, weight, difference } in stacks {
        let names: Vec<&str> = stack.split(';').collect();
        let same = open.iter().zip(&names).take_while(|(at, name)| frames[**at].name == **name).count();
        open.truncate(same);
        for (depth, name) in names.iter().enumerate().skip(same) {
            open.push(frames.len());
            frames.push(Frame { name: (*name).to_owned(), depth, from, weight: 0, difference: difference.map(|_| 0) });
        }
        for at in &open {
            let frame = &mut frames[*at];
            frame.weight += u128::from(weight);
            frame.difference = frame.difference.zip(difference).map(|(all, more)| all.saturating_add(more));
        }
        from += u128::from(weight);
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_hold_the_stacks_that_go_through_them() {
        let stack = |stack: &str, weight, difference| Weighted { stack: stack.into(), weight, difference };
        // a name that begins like another, with a letter before the semicolon in order of bytes
        let stacks = vec![
            stack("a;b", 3, Some(-1)),
            stack("a 2;b", 1, Some(1)),
            stack("a", 5, Some(2)),
            stack("a;b;c", 2, Some(4)),
        ];
        let of = |frame: &Frame| (frame.name.clone(), frame.depth, frame.from, frame.weight, frame.difference.unwrap());
        let frame = |name: &str, depth, from, weight, difference| (name.to_owned(), depth, from, weight, difference);
        assert_eq!(
            frames(stacks).iter().map(of).collect::<Vec<_>>(),
            [
                frame("a", 0, 0, 10, 5),
                frame("b", 1, 5, 5, 3),
                frame("c", 2, 8, 2, 4),
                frame("a 2", 0, 10, 1, 1),
                frame("b", 1, 10, 1, 1),
            ]
        );
    }
}
