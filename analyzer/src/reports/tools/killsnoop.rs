//! `analyze killsnoop`: the calls of kill, tkill and tgkill, in killsnoop's columns.

use systape_format::model::Gap;

use crate::asked::config::view::Part::All;
use crate::asked::config::view::{CPUS, Rows, Run, TASKS, View};
use crate::asked::options::stacks::Below;
use crate::lines::row::{Outcome, outcome};
use crate::lines::tables::{CALLS, LOSSES};
use crate::lines::text::Text;
use crate::lines::{LineFormat, SegmentLines};
use crate::render::stamp::{Column, Stamps};
use crate::reports::Context;
use crate::reports::calls::answer_in;
use crate::reports::listing::Lines;
use crate::table::filter::start_known;
use crate::table::load::Loaded;
use crate::table::loss::Hole;
use crate::values::words::escaped;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "killsnoop",
    about: "Calls of kill, tkill and tgkill in the columns of bcc's killsnoop; what came of them: analyze kills --all",
    events: &["kill", "tkill", "tgkill"],
    options: &[TASKS, CPUS, &["time", "failure", "max_events", "clock", "absolute"]],
    examples: [
        ("analyze killsnoop -x", "those that failed"),
        ("analyze killsnoop --clock wall", "with the time of day"),
    ],
    tables: &[Rows::of("killsnoop", &[All(&CALLS)]), Rows::json("killsnoop", &[All(&LOSSES)])],
    run: Run::Prints(|config, tape| {
        answer_in(config, tape, &Lines::Calls(|context| Box::new(Kills::new(context))), Below::default())
    }),
    ..View::PLAIN
};

const TIME: Column = Column { name: "TIME", width: 9, places: 3, right: false };

/// Its lines.
struct Kills<'a> {
    /// Those of losses are the listing's.
    listing: Text<'a>,
    stamps: Stamps,
    open: u64,
}

impl<'a> Kills<'a> {
    fn new(context: &Context<'a>) -> Self {
        let session = context.question.tape.session();
        let listing = Text::new(session, context.config.look, context.stamps());
        Self { listing, stamps: context.stamps(), open: session.window_open }
    }
}

fn columns([time, pid, comm, signal, target, result]: [&str; 6]) -> Vec<u8> {
    format!("{time} {pid:<7} {comm:<16} {signal:<4} {target:<7} {result}\n").into_bytes()
}

impl LineFormat for Kills<'_> {
    fn header(&self) -> Vec<u8> {
        columns([&self.stamps.heading(TIME), "PID", "COMM", "SIG", "TPID", "RESULT"])
    }

    fn segment<'a>(&'a self, segment: &'a Loaded) -> Box<dyn SegmentLines + 'a> {
        Box::new(KillLines { form: self, segment })
    }

    fn gap(&self, gap: &Gap) -> Vec<u8> {
        self.listing.gap(gap)
    }

    fn hole(&self, hole: &Hole) -> Vec<u8> {
        self.listing.hole(hole)
    }
}

struct KillLines<'a> {
    form: &'a Kills<'a>,
    segment: &'a Loaded,
}

impl SegmentLines for KillLines<'_> {
    fn row(&mut self, out: &mut Vec<u8>, row: usize) {
        let (segment, stamps) = (self.segment, &self.form.stamps);
        let (start, task) = (segment.time.start[row], segment.task(row));
        let known = start_known(segment.core.state[row], start, self.form.open);
        let time = if known { stamps.text(TIME, start) } else { stamps.word(TIME, "?") };
        // both are ints
        let argument =
            |at| segment.args.args.get(row).map_or_else(|| "?".to_owned(), |args| (args[at] as i32).to_string());
        // of tgkill the thread, which stands behind its group
        let target = usize::from(segment.call(row).name == "tgkill");
        let result = match outcome(segment, row) {
            Outcome::Ret(ret) => ret.to_string(),
            Outcome::Errno(errno) | Outcome::Restart(errno) => format!("-{errno}"),
            _ => "?".to_owned(),
        };
        let (pid, comm) = (task.pid.to_string(), escaped(&task.comm));
        out.extend(columns([&time, &pid, &comm, &argument(target + 1), &argument(target), &result]));
    }
}
