//! Stacks and names in `info`.

use serde_json::{Map, Value, json};
use systape_format::model::{Session, StackMode, StackOf, StackStatus};

use systape_answers::derive::stacks::ending::StackEnding;
use systape_answers::derive::stacks::label;
use systape_answers::derive::stacks::recorded::{Inventory, Unnamed};
use systape_answers::render::json::bytes;
use systape_answers::render::row::Row;
use systape_events::values::words::escaped;

/// Most files without names that are listed one by one.
const LISTED: usize = 8;

/// The name of a kind of event in text and JSON.
fn name(of: StackOf) -> &'static str {
    match of {
        StackOf::Syscall => "syscall",
        StackOf::Switch => "switch",
        StackOf::Wakeup => "wakeup",
        StackOf::Block => "block",
        StackOf::Signal => "signal",
        StackOf::Sample => "sample",
        StackOf::Asleep => "asleep",
        StackOf::Row => "row",
    }
}

fn names(kinds: &[StackOf]) -> Vec<&'static str> {
    kinds.iter().map(|of| name(*of)).collect()
}

/// `stacks` and `symbols` lines, escaped.
pub(super) fn lines(session: &Session, inventory: &Inventory) -> Vec<(&'static str, String)> {
    let settings = &session.stacks;
    let mode = match settings.mode {
        StackMode::None => "no user stacks".to_owned(),
        StackMode::FramePointers => "user stacks by frame pointers".to_owned(),
        StackMode::Dwarf => format!("user stacks by unwind information (up to {} bytes copied)", settings.copy_limit),
    };
    let mut text = format!("{mode}, of {}", names(&settings.on).join(", "));
    if !settings.kernel.is_empty() {
        text.push_str(&format!("; the kernel's part of {}", names(&settings.kernel).join(", ")));
    }
    if settings.frequency > 0 {
        text.push_str(&format!("; {} samples a second", settings.frequency));
    }
    if settings.min_dur > 0 {
        text.push_str(&format!("; calls of at least {} ms", settings.min_dur as f64 / 1e6));
    }
    let mut lines = vec![("stacks", text)];
    for (of, statuses) in &inventory.stacks {
        let count: u64 = statuses.values().sum();
        let part = |wanted: &dyn Fn(StackStatus) -> bool| -> u64 {
            statuses.iter().filter(|(status, _)| wanted(**status)).map(|(_, count)| count).sum()
        };
        let complete = part(&StackStatus::is_complete);
        let mut text = format!("{count} {}, {:.1}% complete", name(*of), 100.0 * complete as f64 / count.max(1) as f64);
        let reasons = statuses.iter().filter(|(status, _)| !status.is_complete());
        for (nth, (status, count)) in reasons.enumerate() {
            text.push_str(if nth == 0 { ": " } else { "; " });
            text.push_str(&format!("{} ({count})", StackEnding::Status(*status).words()));
        }
        lines.push(("", text));
    }
    lines.push(("symbols", format!("{} of {} places in code have names", inventory.named, inventory.places)));
    for unnamed in inventory.unnamed.iter().take(LISTED) {
        let why = unnamed.why.as_deref().map(|why| format!(": {}", escaped(why.as_bytes()))).unwrap_or_default();
        lines.push(("", format!("{} without in {}{why}", unnamed.places, escaped(label::module(&unnamed.mapping)))));
    }
    if inventory.unnamed.len() > LISTED {
        let rest = &inventory.unnamed[LISTED..];
        let places: u64 = rest.iter().map(|unnamed| unnamed.places).sum();
        lines.push(("", format!("{places} without in {} more files", rest.len())));
    }
    lines
}

/// Sets the columns of the objects `stacks` and `symbols`.
pub(super) fn fill(row: &mut Row<'_>, session: &Session, inventory: Option<&Inventory>) {
    let Some(inventory) = inventory else {
        row.absent("stacks").absent("symbols");
        return;
    };
    let settings = &session.stacks;
    row.set(
        "stacks_mode",
        match settings.mode {
            StackMode::None => "none",
            StackMode::FramePointers => "fp",
            StackMode::Dwarf => "dwarf",
        },
    );
    row.set("stacks_copy_limit", settings.copy_limit).set("stacks_on", Value::from(names(&settings.on)));
    row.set("stacks_kernel", Value::from(names(&settings.kernel))).set("stacks_frequency", settings.frequency);
    row.set("stacks_min_dur_ns", settings.min_dur).set("stacks_events", events(inventory));
    let unnamed = |unnamed: &Unnamed| {
        json!({
            "module": bytes(label::module(&unnamed.mapping)),
            "build_id": super::hex(&unnamed.mapping.build_id),
            "places": unnamed.places,
            "why": unnamed.why,
        })
    };
    row.set("symbols_places", inventory.places).set("symbols_named", inventory.named);
    row.set("symbols_unnamed", Value::from(inventory.unnamed.iter().map(unnamed).collect::<Vec<_>>()));
}

/// How stacks end, by kind of event.
fn events(inventory: &Inventory) -> Value {
    let mut events = Map::new();
    for (of, statuses) in &inventory.stacks {
        let complete: u64 = statuses.iter().filter(|(status, _)| status.is_complete()).map(|(_, count)| count).sum();
        let reasons: Map<String, Value> = statuses
            .iter()
            .map(|(status, count)| (StackEnding::Status(*status).name().to_owned(), (*count).into()))
            .collect();
        let count: u64 = statuses.values().sum();
        events.insert(name(*of).to_owned(), json!({"stacks": count, "complete": complete, "status": reasons}));
    }
    events.into()
}
