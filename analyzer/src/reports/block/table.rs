//! Sums as tables, histograms and rows.

use std::io::{self, Write};

use systape_answers::derive::block::by::{self as parts_of, Part};
use systape_answers::derive::block::sums::{BlockSums, HistogramOf, Sum};
use systape_answers::render::by;
use systape_answers::render::cell::Cell;
use systape_answers::render::keys::{with_keys, with_parts};
use systape_answers::render::mark;
use systape_answers::render::out::Out;
use systape_answers::render::rank::more;
use systape_answers::render::row::{Judgement, Row};
use systape_answers::render::table::{Table, millis_if};
use systape_answers::values::output::line;
use systape_events::group::by::GroupKey;

systape_format::tables! {
    /// With `--top` or `--hist` one row for each value of the keys of `--by`, which stand before these columns.
    pub SUMS = "block_sums" {
        ios ? AtLeast: Count "I/Os"
        read_bytes ? AtLeast: Wide "bytes that were read"
        written_bytes ? AtLeast: Wide "bytes that were written"
        errors ? AtLeast: Count "I/Os that failed"
        requeues ? AtLeast: Count "how often they went back to the queue"
        timed_ios ? AtLeast: Count "I/Os of which it is known how long the device took; the times below are of them"
        total_ns ? AtLeast: Duration "how long the device took for all of them"
        avg_ns ? OfKnown: Duration "mean; null: `timed_ios` is 0"
        max_ns ? AtLeast: Duration "longest; null: `timed_ios` is 0"
        share ? OfKnown: Real "part of the time of all rows that are in the total, 0 to 1; null: it is not, or perhaps twice"
        in_total: Flag "false: a stacked device, whose I/Os are counted on the disks below it too; null: I/Os of a device that came during the recording are in it: what is below that is not known, and the total may have them twice"
    }
    /// With `--hist` also:
    pub HISTOGRAM = "block_histogram" {
        unit: Word "unit of the bounds: `us`, with `--sizes` `KiB`"
        histogram ? AtLeast: Nested "`[{\"from\": 64, \"to\": 127, \"count\": 5}]`: how many I/Os took so long or were of that size, `to` inclusive, without empty buckets; those of which it is not known, and without data, are in none"
    }
}

/// Input of the tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockInput<'a> {
    /// The keys.
    pub keys: &'a [GroupKey],
    /// The sums.
    pub folded: &'a BlockSums,
    /// Names for their values.
    pub names: parts_of::Names<'a>,
    /// Whether nothing is missing.
    pub complete: bool,
    /// What histograms have buckets of.
    pub measure: HistogramOf,
}

impl BlockInput<'_> {
    /// A table, the total below it, and the devices that the total leaves out.
    pub(crate) fn top(&self, limit: usize, out: &mut impl Write) -> io::Result<()> {
        let table = self.keys.iter().fold(Table::default(), |table, key| table.word(parts_of::column(*key)));
        let mut table = NUMBERS.iter().fold(table, |table, heading| table.number(heading)).leaving(&NARROW);
        for (parts, sum, counted) in self.folded.rows.iter().take(limit) {
            let names = self.keys.iter().zip(parts);
            let mut texts: Vec<String> =
                names.map(|(key, part)| parts_of::text((*key, part), sum.comm(), &self.names)).collect();
            let share = self.share(sum).filter(|_| *counted == Some(true));
            texts.extend(numbers(sum));
            texts.push(share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}%", 100.0 * share)));
            table.row(texts);
        }
        let all = &self.folded.all;
        let mut texts = vec![String::new(); self.keys.len()];
        texts.first_mut().into_iter().for_each(|first| "all disks".clone_into(first));
        texts.extend(numbers(all));
        texts.push((if all.timed > 0 { "100.0%" } else { "-" }).to_owned());
        table.row(texts);
        table.print(out)?;
        let more = more(self.folded.rows.len(), limit);
        more.iter().try_for_each(|text| line(out, &text.replace("--top 0", "--top=0")))?;
        self.stacked(out)
    }

    /// A histogram of latencies for each key, and the devices they leave out.
    pub(crate) fn histograms(&self, out: &mut impl Write) -> io::Result<()> {
        for (parts, sum, _) in &self.folded.rows {
            line(out, &format!("{}: {} I/Os{}", self.title(parts, sum), sum.ios, self.unknown(sum)))?;
            sum.hist.print(out, self.measure.unit())?;
            line(out, "")?;
        }
        self.stacked(out)
    }

    /// `disk = vda, op = read`.
    fn title(&self, parts: &[Part], sum: &Sum) -> String {
        let value = |(key, part): (&GroupKey, &Part)| {
            let text = parts_of::text((*key, part), sum.comm(), &self.names);
            format!("{} = {text}", parts_of::column(*key))
        };
        self.keys.iter().zip(parts).map(value).collect::<Vec<_>>().join(", ")
    }

    /// `, 2 of unknown latency`: I/Os that are in no bucket.
    fn unknown(&self, sum: &Sum) -> String {
        let what = if self.measure == HistogramOf::Size { "without data" } else { "of unknown latency" };
        match sum.ios.saturating_sub(sum.hist.total()) {
            0 => String::new(),
            count => format!(", {count} {what}"),
        }
    }

    /// Prints them as biolatency does: a line with the keys only if there are some.
    pub(crate) fn as_biolatency(&self, out: &mut impl Write) -> io::Result<()> {
        for (parts, sum, _) in &self.folded.rows {
            if !parts.is_empty() {
                line(out, &format!("\n{}", self.title(parts, sum)))?;
            }
            sum.hist.print(out, self.measure.unit())?;
            let unknown = self.unknown(sum);
            if !unknown.is_empty() {
                line(out, &format!("({} I/Os{unknown})", sum.ios))?;
            }
        }
        self.stacked(out)
    }

    /// Lines on devices that the total leaves out.
    fn stacked(&self, out: &mut impl Write) -> io::Result<()> {
        let shown = self.keys.contains(&GroupKey::Disk);
        for (dev, ios, below) in &self.folded.stacked {
            let below: Vec<_> = below.iter().map(|dev| self.names.devices.name(*dev)).collect();
            let place = if shown { "not in the total" } else { "left out" };
            // "became" later, perhaps, or never: a loop device writes to the page cache
            let (name, noun) = (self.names.devices.name(*dev), if *ios == 1 { "I/O" } else { "I/Os" });
            line(
                out,
                &format!("{name}: {ios} {noun} {place}: the I/Os they turned into are counted on {}", below.join(", ")),
            )?;
        }
        self.late().iter().try_for_each(|text| line(out, text))
    }

    /// What may be counted twice.
    pub(crate) fn late(&self) -> Option<String> {
        let names: Vec<String> = self.folded.late.iter().map(|dev| self.names.devices.name(*dev)).collect();
        (!names.is_empty()).then(|| {
            format!(
                "at most: {} came during the recording: if a disk is below, the I/Os are counted there too",
                names.join(", ")
            )
        })
    }

    /// Share of the time of everything.
    fn share(&self, sum: &Sum) -> Option<f64> {
        (self.folded.all.total > 0).then(|| sum.total as f64 / self.folded.all.total as f64)
    }

    /// Prints a row for each key, at most `limit`; with its histogram if `hist`.
    pub(crate) fn rows(&self, hist: bool, limit: usize, out: &mut Out) -> io::Result<()> {
        let parts = if hist { vec![&HISTOGRAM] } else { Vec::new() };
        let table = with_keys(by::columns(self.keys), &with_parts(&SUMS, parts));
        let rows = self.folded.rows.iter().take(limit).map(|(parts, sum, counted)| {
            let mut row = Row::new(&table);
            by::fill(&mut row, self.keys, |by, name| {
                let place = self.keys.iter().position(|key| *key == by);
                let part = place.and_then(|at| parts.get(at));
                let owner = sum.owner.as_ref();
                part.map_or(Cell::Null, |part| parts_of::cell((by, name), part, owner, &self.names))
            });
            // what is not known of some takes time all the same
            let untimed = sum.timed < sum.ios;
            row.set("ios", sum.ios).set("read_bytes", sum.read).set("written_bytes", sum.written);
            row.set("errors", sum.errors).set("requeues", sum.requeues).set("timed_ios", sum.timed);
            row.bound("total_ns", sum.total_ns(), untimed).bound("avg_ns", sum.avg(), untimed);
            row.bound("max_ns", (sum.timed > 0).then_some(sum.max), untimed);
            row.bound("share", self.share(sum).filter(|_| *counted == Some(true)), untimed).set("in_total", *counted);
            if hist {
                let unit = if self.measure == HistogramOf::Size { "KiB" } else { "us" };
                let unsure = self.measure != HistogramOf::Size && sum.hist.total() < sum.ios;
                row.set("unit", unit).bound("histogram", sum.hist.json(), unsure);
            }
            row
        });
        out.rows(&table, Judgement::Touched(!self.complete), rows)?;
        self.late().iter().for_each(|text| out.say(text));
        Ok(())
    }
}

/// The columns of `sum`; `>=` before times when the latency of some I/Os is not known.
fn numbers(sum: &Sum) -> [String; 8] {
    let lead = mark::at_least(sum.timed < sum.ios);
    let known = |ns: u64| (sum.timed > 0).then_some(ns);
    let bound = |ns: Option<u64>| match ns {
        Some(_) => format!("{lead}{}", millis_if(ns)),
        None => millis_if(None),
    };
    [
        sum.ios.to_string(),
        (sum.read / 1024).to_string(),
        (sum.written / 1024).to_string(),
        sum.errors.to_string(),
        sum.requeues.to_string(),
        bound(known(sum.total_ns())),
        millis_if(sum.avg()),
        bound(known(sum.max)),
    ]
}

/// The columns of numbers.
const NUMBERS: [&str; 9] =
    ["I/Os", "read KiB", "written KiB", "errors", "requeued", "total ms", "avg ms", "max ms", "share"];

/// Those that a narrow terminal has no room for, in the order in which they leave.
const NARROW: [&str; 7] = ["requeued", "errors", "share", "avg ms", "read KiB", "written KiB", "max ms"];
