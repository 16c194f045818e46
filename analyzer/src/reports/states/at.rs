//! `states --at TIME`: every thread at one instant, longest off the CPU first; with `--call-graph` by stack.

use anyhow::Result;
use systape_format::model::{Family, GapCause};

use super::super::{Context, call_texts, instant, losses, scheduling};
use super::now::{NOW, Now};
use super::stacks::{self, Left, STACKS};
use crate::asked::options::stacks::Below;
use systape_answers::derive::runs::decode::Needs;
use systape_answers::derive::runs::keys::{self};
use systape_answers::derive::runs::{feed, gaps};
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::rank::more;
use systape_answers::render::table::Table;
use systape_answers::values::say::Verdict;
use systape_events::values::order::InOrder as _;
use systape_events::values::timespec::Edge;

/// Prints the states at `edge`.
pub(super) fn run(mut context: Context<'_>, edge: Edge, below: &Below, limit: usize, out: &mut Out) -> Result<Verdict> {
    let (tape, session) = (context.question.tape, context.question.tape.session());
    let at = instant::instant(tape, edge, out)?;
    // what was lost before or after does not matter when it is not unknown now
    let needs = Needs { calls: true, ..Needs::default() };
    let fed = feed::feed(&context.question, needs, at, Left::default());
    let all_calls = keys::all_calls(session);
    let longer = gaps::of_longer_calls(tape, at);
    let mut now: Vec<Now<'_>> = fed
        .tracker
        .threads()
        .iter()
        .enumerate()
        .filter(|(_, thread)| {
            thread.followed && !thread.dead && thread.since <= at && context.question.scope.task(&thread.task)
        })
        .map(|(slot, thread)| Now::of((slot, thread), at, session.window_open, all_calls, &longer))
        .collect();
    now.order_by_key(|now| (std::cmp::Reverse(now.off), now.thread.last_in, now.thread.task.tid));
    let ts = at.wrapping_sub(session.window_open) as i64;
    // `fed` ended at that instant: what was lost matters if something was unknown then because of it
    if now.iter().any(|now| now.missed()) || fed.unsure_until >= at {
        context.question.loss.add_earlier(tape, &context.question.families, at);
    } else {
        // what was damaged before a repair is looked at for every instant, as damage itself is
        context.question.loss.gaps.retain(|gap| matches!(gap.cause, GapCause::Damaged | GapCause::DetailDamaged));
    }
    // a call that is not on the tape, or not with all that was recorded of it, may have ended at any later time
    if now.iter().any(|now| now.unsure) {
        context.question.loss.add_earlier(tape, &[Family::Syscall], u64::MAX);
        context.question.loss.cut = tape.end().is_none().then(|| tape.complete_until());
    }
    fed.coverage.tell(&mut context.question.loss);
    if now.is_empty()
        && let Some(ended) = instant::all_ended(&context, at)
    {
        context.config.shown.explained();
        out.say(&ended);
    }
    if below.asked() {
        context.question.loss.add_earlier(tape, &[Family::Stack], u64::MAX);
        return with_stacks(&context, below, &fed.tracker.sink, (&now, ts), limit, out);
    }
    let all = now.len();
    now.truncate(limit);
    let calls: Vec<_> = now.iter().map(|now| (now.thread.task.utid, now.call)).collect();
    let arguments = call_texts::of(&context, &calls);
    let numbers = Table::default().number("off ms").number("came ms").word("state").number("pid").number("tid");
    scheduling::head(&context, out)?;
    out.ranking(
        TopRows {
            table: &NOW,
            judged: context.judged(),
            headings: numbers
                .number("cpu")
                .word("command")
                .number("call ms")
                .word("call")
                .leaving(&["came ms", "cpu", "pid", "call ms"]),
            all,
            limit,
        },
        now.iter().zip(&arguments),
        |(now, arguments)| now.row(&context, ts, arguments.as_deref()),
        |(now, arguments)| now.cells(&context, arguments.as_deref()),
    )?;
    losses::end_of_sums(&context, out)
}

/// Prints threads by their stacks.
fn with_stacks(
    context: &Context<'_>,
    below: &Below,
    left: &Left,
    (now, ts): (&[Now<'_>], i64),
    limit: usize,
    out: &mut Out,
) -> Result<Verdict> {
    let mut groups = stacks::groups(context, below, left, now, out)?;
    context.config.shown.rows(groups.len());
    let more = more(groups.len(), limit);
    groups.truncate(limit);
    let max = below.limits().max;
    scheduling::head(context, out)?;
    if out.is_text() {
        groups.iter().try_for_each(|group| group.print(max, out))?;
    } else {
        out.rows(&STACKS, context.judged(), groups.iter().map(|group| group.row(ts, max)))?;
    }
    out.text(more)?;
    losses::end_of_sums(context, out)
}
