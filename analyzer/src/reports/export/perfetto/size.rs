//! How large a trace becomes, said before it is written.

use std::path::Path;

use crate::reports::Context;
use systape_answers::render::out::Out;
use systape_events::values::words::shell;

/// Most slices that ui.perfetto.dev is pleasant with: 5 M are 390 MB, and take a minute to open.
const MOST: u64 = 5_000_000;
/// Bytes of a call's slice, about.
const BYTES: u64 = 78;

/// Says it if there are more calls than fit, with a part of the tape that would.
pub(super) fn warn(context: &Context<'_>, segments: &[usize], path: &Path, out: &mut Out) {
    let tape = context.question.tape;
    let rows = |at: &usize| u64::from(tape.segments()[*at].rows);
    let all: u64 = segments.iter().map(rows).sum();
    if all <= MOST {
        return;
    }
    let mut left = MOST;
    let fits = segments.iter().take_while(|at| {
        let fits = left >= rows(at);
        left = left.saturating_sub(rows(at));
        fits
    });
    let open = tape.session().window_open;
    let end = fits.last().map_or(open, |at| tape.segments()[*at].end_min);
    let from = context.question.scope.from.max(open);
    let seconds = |ts: u64| ts.saturating_sub(open) as f64 / 1e9;
    let file = shell(&[path.as_os_str().as_encoded_bytes().to_vec()]);
    out.say(&format!(
        "up to {:.1} million calls, about {} MB: ui.perfetto.dev opens some {} million; --time {} would fit, or --duration 1ms, -p PID, -e '!futex' ({})",
        all as f64 / 1e6,
        all * BYTES / 1_000_000,
        MOST / 1_000_000,
        format_args!("{:.3},{:.3}", seconds(from), seconds(end)),
        file,
    ));
}
