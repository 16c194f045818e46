//! Reports about stacks, on the tape of `common::stacks`.

mod common;

use common::Place;
use common::stacks;

#[test]
fn look() {
    let place = Place::with_sample();
    stacks::write(std::path::Path::new("/work/tmp/an/stacks.tape"), 1);
    drop(place);
}
