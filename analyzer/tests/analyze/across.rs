//! `analyze across` of damaged tapes: what is said is what the whole tapes say, or marked.

use std::fs;

use serde_json::Value;

use crate::common::Place;
use crate::common::commands::MACHINES;

fn rows(place: &Place, words: &str) -> Option<Vec<Value>> {
    let got = place.ask(words);
    (got.status == 0 || !got.out.is_empty())
        .then(|| got.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// Whether `row` of a damaged tape is that of the whole one, or says that it may not be; bounds hold, but for 0.1 us by which clocks may run
/// apart within a stretch.
fn is_honest(row: &Value, whole: &Value) -> bool {
    let number = |row: &Value, name: &str| row[name].as_f64();
    let marked =
        |name: &str| ["at_least", "of_known", "at_most"].iter().any(|mark| row[format!("{name}_{mark}")] == true);
    let object = row.as_object().unwrap();
    object.keys().filter(|name| !["at_least", "of_known", "at_most"].iter().any(|mark| name.ends_with(mark))).all(
        |name| {
            let (have, had) = (number(row, name), number(whole, name));
            let below = row[format!("{name}_at_least")] == true && have <= had.map(|had| had + 1e-4);
            let above = row[format!("{name}_at_most")] == true && have >= had.map(|had| had - 1e-4);
            let unknown = row[name].is_null() && (name.ends_with("_host") || name.starts_with("ahead_"));
            row[name] == whole[name]
                || unknown
                || (marked(name) && (below || above || row[format!("{name}_of_known")] == true))
        },
    )
}

#[test]
fn one_byte_leaves_an_answer_right_or_marked() {
    let place = Place::new();
    let whole = rows(&place, &format!("across {} {} --format json", MACHINES[0], MACHINES[1])).unwrap();
    let [sums, clocks] = &whole[..] else { panic!("{whole:?}") };
    assert_eq!((&sums["exchanges"], &clocks["unsure"]), (&236.into(), &0.into()));
    let (mut asked, mut less) = (0, 0);
    for which in [0, 1] {
        let bytes = fs::read(MACHINES[which]).unwrap();
        for at in (500..bytes.len()).step_by(1500) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            fs::write(place.path("damaged.tape"), damaged).unwrap();
            let mut tapes = MACHINES.map(str::to_owned);
            tapes[which] = "damaged.tape".to_owned();
            let Some(found) = rows(&place, &format!("across {} {} --format json", tapes[0], tapes[1])) else {
                continue;
            };
            asked += 1;
            for row in &found {
                let of = if row.get("server").is_some() { sums } else { clocks };
                let mut row = row.clone();
                // the damaged one has another name
                for name in ["client_tape", "server_tape", "first_tape", "second_tape"] {
                    if row.get(name).is_some() {
                        row[name] = of[name].clone();
                    }
                }
                less += u32::from(row["exchanges"] != of["exchanges"]);
                assert!(is_honest(&row, of), "byte {at} of {}: {row}\nwhole: {of}", MACHINES[which]);
            }
        }
    }
    assert!(asked > 40 && less > 10, "{asked} answers, {less} with fewer exchanges");
}
