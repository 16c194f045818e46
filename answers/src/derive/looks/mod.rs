//! Looks at all threads (`record --sample`): what threads were in, as rows of stays and samples of CPUs, and what can be said of it.
//!
//! [`walk`] passes each row of the time asked for once, with the time that it stands for; all that reports say of looks is made of these:
//! sums by keys ([`sums`]), locks ([`locks`]), the picture of one instant ([`instant`]), stays one by one ([`found`]), and what
//! `why` judges ([`super::why::seen`]). How far a sum may be from the truth [`presence`] says. Rows of looks are never added to rows of events.

pub mod found;
pub mod instant;
pub mod locks;
pub mod presence;
pub mod stored;
pub mod sums;
pub mod walk;
