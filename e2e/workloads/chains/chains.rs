//! Chains of Rust functions: generic, closures, trait objects, inlined ones.

use std::hint::black_box;

unsafe extern "C" {
    fn lseek(fd: i32, offset: i64, whence: i32) -> i64;
}

const TIMES: i64 = 211;
const GENERIC: i32 = 50;
const CLOSURE: i32 = 51;
const DYNAMIC: i32 = 52;

#[inline(always)]
fn event(case: i32, turn: i64) {
    // SAFETY: takes numbers only.
    black_box(unsafe { lseek(-1000 - case, turn, 0) });
}

mod shapes {
    use super::{DYNAMIC, GENERIC, black_box, event};

    #[inline(never)]
    pub fn generic<T: Copy>(turn: i64, value: T) -> T {
        event(GENERIC, turn);
        black_box(value)
    }

    pub trait Shape {
        fn area(&self, turn: i64) -> i64;
    }

    pub struct Square(pub i64);

    impl Shape for Square {
        #[inline(never)]
        fn area(&self, turn: i64) -> i64 {
            event(DYNAMIC, turn);
            black_box(self.0)
        }
    }

    #[inline(never)]
    pub fn measure(shape: &dyn Shape, turn: i64) -> i64 {
        black_box(shape.area(turn))
    }
}

#[inline(never)]
fn for_each(mut f: impl FnMut(i64)) {
    for turn in 0..TIMES {
        f(turn);
        black_box(turn);
    }
}

fn main() {
    for turn in 0..TIMES {
        black_box(shapes::generic(turn, 1.5_f32));
    }
    for_each(|turn| event(CLOSURE, turn));
    let square: Box<dyn shapes::Shape> = black_box(Box::new(shapes::Square(3)));
    for turn in 0..TIMES {
        black_box(shapes::measure(&*square, turn));
    }
}
