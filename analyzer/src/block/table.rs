//! Sums as tables, histograms and records.

use std::io::{self, Write};

use systape_format::model::Session;

use super::by::{self, Key, Part};
use super::sums::{Folded, Sum};
use crate::devices::Devices;
use crate::output::line;
use crate::render::record::{Record, millis};

/// What there is to print.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// What was added up by.
    pub keys: &'a [Key],
    /// The sums.
    pub folded: &'a Folded,
    /// The tape.
    pub session: &'a Session,
    /// Its devices.
    pub devices: &'a Devices,
    /// Whether nothing is missing.
    pub complete: bool,
}

impl View<'_> {
    /// A table, the total below it, and what that leaves out.
    pub fn top(&self, out: &mut impl Write) -> io::Result<()> {
        let mut head = String::new();
        for key in self.keys {
            let (name, width) = by::column(*key);
            head.push_str(&format!("{name:<width$} "));
        }
        let keys = head.len();
        head.push_str(&format!(
            "{:>8} {:>10} {:>10} {:>5} {:>5} {:>11} {:>9} {:>9} {:>6}",
            "IOS", "READ(KiB)", "WRIT(KiB)", "ERRS", "REQUE", "TOTAL(ms)", "AVG(ms)", "MAX(ms)", "SHARE"
        ));
        line(out, &head)?;
        for (parts, sum, counted) in &self.folded.rows {
            let mut names = String::new();
            for (key, part) in self.keys.iter().zip(parts) {
                let width = by::column(*key).1;
                names.push_str(&format!("{:<width$} ", by::text(part, &sum.comm, self.session, self.devices)));
            }
            let share = self.share(sum).filter(|_| *counted);
            let share = share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}%", 100.0 * share));
            line(out, &format!("{names}{} {share:>6}", numbers(sum)))?;
        }
        let all = &self.folded.all;
        line(
            out,
            &format!("{:<keys$}{} {:>6}", "all disks", numbers(all), if all.timed > 0 { "100.0%" } else { "-" }),
        )?;
        self.stacked(out)
    }

    /// A histogram of latencies for each key, and what they leave out.
    pub fn histograms(&self, out: &mut impl Write) -> io::Result<()> {
        for (parts, sum, _) in &self.folded.rows {
            let value = |(key, part): (&Key, &Part)| {
                let text = by::text(part, &sum.comm, self.session, self.devices);
                let words: Vec<_> = text.split_whitespace().collect();
                format!("{} = {}", name(*key), words.join(" "))
            };
            let names: Vec<_> = self.keys.iter().zip(parts).map(value).collect();
            let unknown = match sum.ios - sum.timed {
                0 => String::new(),
                count => format!(", {count} of unknown latency"),
            };
            line(out, &format!("{}: {} I/Os{unknown}", names.join(", "), sum.ios))?;
            sum.hist.print(out, "usecs")?;
            line(out, "")?;
        }
        self.stacked(out)
    }

    /// Lines on devices that the total leaves out.
    fn stacked(&self, out: &mut impl Write) -> io::Result<()> {
        let shown = self.keys.contains(&Key::Disk);
        for (dev, ios, below) in &self.folded.stacked {
            let below: Vec<_> = below.iter().map(|dev| self.devices.name(*dev)).collect();
            let place = if shown { "not in the total" } else { "left out" };
            // "became" later, perhaps, or never: a loop device writes to the page cache
            let (name, noun) = (self.devices.name(*dev), if *ios == 1 { "I/O" } else { "I/Os" });
            line(out, &format!("{name}: {ios} {noun} {place}: what they became is counted on {}", below.join(", ")))?;
        }
        Ok(())
    }

    /// Part of the time of everything.
    fn share(&self, sum: &Sum) -> Option<f64> {
        (self.folded.all.total > 0).then(|| sum.total as f64 / self.folded.all.total as f64)
    }

    /// A record of each row; with its histogram in it when `hist`.
    pub fn records(&self, hist: bool, out: &mut impl Write, csv: bool) -> io::Result<()> {
        let mut buffer = Vec::new();
        for (at, (parts, sum, counted)) in self.folded.rows.iter().enumerate() {
            let mut record = self.keyed(parts, sum);
            record
                .set("ios", sum.ios)
                .wide("read_bytes", sum.read)
                .wide("written_bytes", sum.written)
                .set("errors", sum.errors)
                .set("requeues", sum.requeues)
                .set("timed_ios", sum.timed)
                .set("total_ns", sum.total_ns())
                .set("avg_ns", sum.avg())
                .set("max_ns", (sum.timed > 0).then_some(sum.max))
                .set("share", self.share(sum).filter(|_| *counted))
                .set("in_total", *counted)
                .set("complete", self.complete);
            if hist {
                record.set("unit", "us").set("histogram", sum.hist.json());
            }
            if csv {
                if at == 0 {
                    record.csv_header(&mut buffer);
                }
                record.csv(&mut buffer);
            } else {
                record.json(&mut buffer);
            }
        }
        out.write_all(&buffer)
    }

    /// Histograms as CSV: a line for each bucket that is not empty.
    pub fn buckets(&self, out: &mut impl Write) -> io::Result<()> {
        let mut buffer = Vec::new();
        for (parts, sum, _) in &self.folded.rows {
            for (low, high, count) in sum.hist.buckets().into_iter().filter(|(_, _, count)| *count > 0) {
                let mut record = self.keyed(parts, sum);
                record.set("from_us", low).set("to_us", high).set("count", count).set("complete", self.complete);
                if buffer.is_empty() {
                    record.csv_header(&mut buffer);
                }
                record.csv(&mut buffer);
            }
        }
        out.write_all(&buffer)
    }

    fn keyed(&self, parts: &[Part], sum: &Sum) -> Record {
        let mut record = Record::default();
        for (key, part) in self.keys.iter().zip(parts) {
            by::fields(&mut record, *key, part, &sum.comm, self.session, self.devices);
        }
        record
    }
}

/// The name of `key` in the heading of a histogram.
fn name(key: Key) -> String {
    let column = by::column(key).0;
    column.split_whitespace().next_back().unwrap_or(column).to_ascii_lowercase()
}

/// The columns of `sum`; `≥` before times when the latency of some I/Os is not known.
fn numbers(sum: &Sum) -> String {
    let lead = if sum.timed < sum.ios { "≥" } else { "" };
    let known = |ns: u64| (sum.timed > 0).then_some(ns);
    let bound = |ns: Option<u64>| match ns {
        Some(_) => format!("{lead}{}", millis(ns)),
        None => millis(None),
    };
    format!(
        "{:>8} {:>10} {:>10} {:>5} {:>5} {:>11} {:>9} {:>9}",
        sum.ios,
        sum.read / 1024,
        sum.written / 1024,
        sum.errors,
        sum.requeues,
        bound(known(sum.total_ns())),
        millis(sum.avg()),
        bound(known(sum.max)),
    )
}
