//! When something was, as text: by one clock, or in seconds with the time of day beside them.
//!
//! Digits that do not fit are cut off, never rounded up: a time that is printed is not after what it is of, so as FROM of `--time` it
//! finds that.

use clap::ValueEnum;
use systape_format::reader::Tape;

use crate::values::output;
use systape_events::question;
use systape_events::values::clock::{self, Clock, Real};
use systape_events::values::num;

/// What times in text count from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TimeBase {
    /// The tape's start
    #[default]
    Start,
    /// The machine's boot: CLOCK_MONOTONIC
    Mono,
    /// Midnight, UTC: the time of day
    Wall,
}

/// A column of times.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Heading of the column, without the unit.
    pub name: &'static str,
    /// Least characters; a time of day has its own.
    pub width: usize,
    /// Decimals of a second; a time of day has six.
    pub places: usize,
    /// Aligned right.
    pub right: bool,
}

/// Makes texts of times.
#[derive(Clone, Debug)]
pub struct Stamps {
    bases: Vec<TimeBase>,
    open: u64,
    clock: Clock,
    /// The day of all of the tape, days since 1970; None: it has several, or is of an unknown time.
    day: Option<i64>,
}

impl Stamps {
    /// Times of `tape` by each of `bases`, side by side. Only times of day need the tape's clock samples.
    pub fn new(bases: &[TimeBase], tape: &Tape) -> Self {
        let wall = bases.contains(&TimeBase::Wall);
        let clock = if wall { question::clock(tape) } else { Clock::default() };
        let day = clock.days(tape.session().window_open, tape.complete_until());
        let day = day.and_then(|(first, last)| (first == last).then_some(first));
        Self { bases: bases.to_vec(), open: tape.session().window_open, clock, day }
    }

    /// Seconds since the start of `tape`, and the time of day beside them where there is room.
    pub fn both(tape: &Tape) -> Self {
        const BOTH: usize = 100;
        let wall = output::room().is_none_or(|room| room >= BOTH).then_some(TimeBase::Wall);
        Self::new(&[TimeBase::Start].into_iter().chain(wall).collect::<Vec<_>>(), tape)
    }

    /// Makes them stamps with a date in each time of day.
    pub fn dated(self) -> Self {
        Self { day: None, ..self }
    }

    /// Stamps of rows without times.
    pub fn none() -> Self {
        Self { bases: Vec::new(), open: 0, clock: Clock::default(), day: None }
    }

    /// Characters of a time of day.
    fn wall_width(&self) -> usize {
        if self.day.is_some() { "05:48:19.012345".len() } else { "2026-11-21T05:48:19.012345Z".len() }
    }

    /// A time of day: `05:48:19.012345`, with its date where the tape is of several days, both where the clock was set; `?`: not known.
    fn wall(&self, out: &mut Vec<u8>, ts: u64) {
        let Some(Real { first, last }) = self.clock.real(ts) else { return out.push(b'?') };
        clock::write_micros(out, first, self.day);
        if first != last {
            out.push(b'/');
            clock::write_micros(out, last, self.day);
        }
    }

    /// `ts` since what `base` counts from: whether it is before that, and ns.
    fn since(&self, base: TimeBase, ts: u64) -> (bool, u64) {
        let base = if base == TimeBase::Start { self.open } else { 0 };
        (ts < base, ts.abs_diff(base))
    }

    /// `ts` in seconds, or as time of day, without filling.
    fn cell(&self, base: TimeBase, ts: u64, places: usize) -> String {
        if base == TimeBase::Wall {
            let mut out = Vec::new();
            self.wall(&mut out, ts);
            return String::from_utf8_lossy(&out).into_owned();
        }
        let (before, ns) = self.since(base, ts);
        let digit = 10_u64.pow(9 - places as u32);
        // what is before the start is cut off away from it
        let count = if before { ns.div_ceil(digit) } else { ns / digit };
        let one = 1_000_000_000 / digit;
        let sign = if before { "-" } else { "" };
        format!("{sign}{}.{:0places$}", count / one, count % one)
    }

    fn filled(&self, base: TimeBase, text: &str, column: Column) -> String {
        let width = if base == TimeBase::Wall { column.width.max(self.wall_width()) } else { column.width };
        if column.right { format!("{text:>width$}") } else { format!("{text:<width$}") }
    }

    /// The cells of `column` at `ts`.
    pub fn text(&self, column: Column, ts: u64) -> String {
        self.each(column, |base| self.cell(base, ts, column.places))
    }

    /// Text of a time `since` ns after the tape's start.
    pub(crate) fn text_since(&self, column: Column, since: i64) -> String {
        self.text(column, self.open.saturating_add_signed(since))
    }

    /// Cells where there is a word instead of a time.
    pub fn word(&self, column: Column, word: &str) -> String {
        self.each(column, |_| word.to_owned())
    }

    /// The headings of these cells: `time s`, `time mono`, `time UTC`; those of bcc's tools as they have them: `TIME(s)`.
    pub fn heading(&self, column: Column) -> String {
        let unit = |base| match base {
            TimeBase::Start => "s",
            TimeBase::Mono => "mono",
            TimeBase::Wall => "UTC",
        };
        let of_bcc = column.name.starts_with(|first: char| first.is_ascii_uppercase());
        let text = |base| {
            if of_bcc { format!("{}({})", column.name, unit(base)) } else { format!("{} {}", column.name, unit(base)) }
        };
        self.each(column, text)
    }

    fn each(&self, column: Column, cell: impl Fn(TimeBase) -> String) -> String {
        let cells: Vec<String> = self.bases.iter().map(|base| self.filled(*base, &cell(*base), column)).collect();
        cells.join(" ")
    }

    /// What stands behind a time in a sentence: ` s`, or nothing behind a time of day.
    pub fn unit(&self) -> &'static str {
        if self.bases.first() == Some(&TimeBase::Wall) { "" } else { " s" }
    }

    /// Time within a sentence: `at 1.234 s`, `at 05:48:19.012345`.
    pub fn at(&self, ts: u64) -> String {
        let base = self.bases.first().copied().unwrap_or_default();
        format!("at {}{}", self.cell(base, ts, 3), self.unit())
    }

    /// `1.234–1.250 s`, `05:48:19.012345–05:48:19.028345`: within a sentence.
    pub fn span(&self, first: u64, last: u64) -> String {
        let base = self.bases.first().copied().unwrap_or_default();
        format!("{}–{}{}", self.cell(base, first, 3), self.cell(base, last, 3), self.unit())
    }

    /// Appends perf trace's column: ms with three decimals, `%10.3f`, or the time of day; `?`: None, not known.
    pub fn listed(&self, out: &mut Vec<u8>, ts: Option<u64>) {
        let base = self.bases.first().copied().unwrap_or_default();
        let width = if base == TimeBase::Wall { self.wall_width() } else { 10 };
        match ts {
            None => num::spaces(out, width - 1, b' '),
            Some(ts) if base == TimeBase::Wall => return self.wall(out, ts),
            Some(ts) => {
                let (before, ns) = self.since(base, ts);
                let us = if before { ns.div_ceil(1000) } else { ns / 1000 };
                return num::millis(out, us.saturating_mul(1000), width, if before { "-" } else { "" });
            }
        }
        out.push(b'?');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systape_format::model::ClockSample;

    const S: u64 = 1_000_000_000;
    /// 2026-11-21T00:00:00Z.
    const MIDNIGHT: u64 = 1_795_219_200 * S;
    const TIME: Column = Column { name: "TIME", width: 9, places: 3, right: false };

    /// A tape of 10 s that began at `open` of that day.
    fn stamps(bases: &[TimeBase], open: u64) -> Stamps {
        let clock =
            Clock::new([ClockSample { monotonic: 100 * S, realtime: MIDNIGHT + open, ..ClockSample::default() }]);
        let day = clock.days(100 * S, 110 * S).and_then(|(first, last)| (first == last).then_some(first));
        Stamps { bases: bases.to_vec(), open: 100 * S, clock, day }
    }

    fn listed(stamps: &Stamps, ts: Option<u64>) -> String {
        let mut out = Vec::new();
        stamps.listed(&mut out, ts);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn digits_are_cut_off() {
        let start = stamps(&[TimeBase::Start], 0);
        assert_eq!(start.text(TIME, 100 * S + 1_999_999), "0.001    ");
        assert_eq!(start.text(TIME, 100 * S - 1), "-0.001   ");
        assert_eq!(listed(&start, Some(100 * S + 1_999_999)), "     1.999");
        assert_eq!(listed(&start, Some(100 * S - 1)), "    -0.001");
        assert_eq!(listed(&start, None), "         ?");
        assert_eq!(stamps(&[TimeBase::Mono], 0).text(TIME, 101 * S + 1_999_999), "101.001  ");
        assert_eq!(start.at(101 * S), "at 1.000 s");
    }

    #[test]
    fn times_of_day_have_a_date_where_days_differ() {
        let wall = stamps(&[TimeBase::Wall], 5 * 3600 * S);
        assert_eq!(listed(&wall, Some(101 * S + 1_999)), "05:00:01.000001");
        assert_eq!(listed(&wall, None), format!("{:>15}", "?"));
        let late = stamps(&[TimeBase::Wall], 86_395 * S);
        assert_eq!(late.text(TIME, 104 * S + 999_999_999), "2026-11-21T23:59:59.999999Z");
        assert_eq!(late.text(TIME, 105 * S), "2026-11-22T00:00:00.000000Z");
        // a process of the day before, in a tape of one day
        let early = stamps(&[TimeBase::Wall], S);
        assert_eq!(early.text(TIME, 99 * S), "00:00:00.000000");
        assert_eq!(early.text(TIME, 98 * S), "2026-11-20T23:59:59.000000Z");
    }

    #[test]
    fn two_clocks_stand_side_by_side() {
        let both = stamps(&[TimeBase::Start, TimeBase::Wall], 3600 * S);
        assert_eq!(both.heading(TIME), "TIME(s)   TIME(UTC)      ");
        assert_eq!(both.heading(Column { name: "time", ..TIME }), "time s    time UTC       ");
        assert_eq!(both.text(TIME, 101 * S), "1.000     01:00:01.000000");
        let unknown = Stamps { clock: Clock::default(), day: None, ..both };
        assert!(unknown.text(TIME, 101 * S).starts_with("1.000     ?"));
    }
}
