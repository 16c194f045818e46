//! Listings of several tapes in one, by time of day. Each is made by a thread of its own, a few segments ahead of what is
//! printed; a tape is opened when its time comes.

use std::collections::VecDeque;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use anyhow::{Context as _, Result, bail};

use super::named::Named;
use super::{has_host, of_one};
use crate::asked::config::Config;
use crate::asked::other;
use systape_answers::render::form::Format;
use systape_answers::render::label::TapeLabel;
use systape_answers::render::out::{ListingPiece, Out};
use systape_answers::values::open::open;
use systape_answers::values::output;
use systape_answers::values::say::{Verdict, complain};
use systape_events::question;
use systape_events::stream::Part;
use systape_events::values::clock::{Clock, day_of};
use systape_events::values::words::escaped;

/// Most tapes of one time: each needs a thread, and memory for some segments.
const MOST: usize = 32;
/// Blocks of lines that wait for their turn.
const WAITING: usize = 2;
/// Bytes collected before a write.
const BUFFER: usize = 1 << 16;

/// A tape of the listing.
#[derive(Debug)]
struct MergedTape {
    path: PathBuf,
    named: Named,
    clock: Clock,
    /// First and last time of day, ns since 1970.
    times: (i64, i64),
}

/// Prints the listing of `tapes`.
pub(super) fn answer(config: &Config, tapes: &[PathBuf]) -> Result<Verdict> {
    if cfg!(target_family = "wasm") {
        bail!(
            "the lines of several tapes are put in order by threads, and there are none here: name one tape, or ask 'top', which adds up any number"
        );
    }
    let (members, verdict) = members(config, tapes);
    let days = members.iter().flat_map(|member| [member.times.0, member.times.1]).map(day_of);
    let dated = days.clone().min() != days.max();
    let most = most_at_once(members.iter().map(|member| member.times));
    if most > MOST {
        bail!(
            "{most} tapes are of the same time, and a listing reads at most {MOST} at once: name fewer, or ask 'top', which adds up any number"
        );
    }
    let whose = names(&members);
    let waiting = members.into_iter().zip(whose).collect();
    std::thread::scope(|scope| {
        let merge = Merge { config, dated, scope, left: config.max_events, verdict };
        merge.run(waiting)
    })
}

/// The tapes whose time of day is known, in order of their beginnings; what is wrong with others is told.
fn members(config: &Config, tapes: &[PathBuf]) -> (Vec<MergedTape>, Verdict) {
    let (mut members, mut verdict) = (Vec::new(), Verdict::default());
    for path in tapes {
        match MergedTape::of(path) {
            Ok(member) => members.push(member),
            Err(error) => {
                verdict.bad = true;
                complain(&format!("{:#}", other::exact(error, path, config)));
            }
        }
    }
    members.sort_by(|one, other| (one.times, &one.path).cmp(&(other.times, &other.path)));
    // the order is by time of day: who doubts it is told
    let doubted = members.iter().filter(|member| member.clock.samples() == 0 || member.clock.was_set());
    doubted.for_each(|member| complain(&format!("{}: {}", member.named.name, member.clock.text())));
    (members, verdict)
}

impl MergedTape {
    fn of(path: &Path) -> Result<Self> {
        let tape = open(path)?;
        let session = tape.session();
        let named = Named::new(path, session.hostname.clone());
        let clock = question::clock(&tape);
        let at =
            |ts| clock.real(ts).with_context(|| format!("{}: it has no clock sample, so no time of day", named.name));
        let begin = at(session.window_open)?.first;
        let end = at(tape.complete_until().max(session.window_open))?.last;
        Ok(Self { path: path.to_owned(), named, clock, times: (begin, end.max(begin)) })
    }
}

/// The largest number of the `times` that one time is in.
fn most_at_once(times: impl Iterator<Item = (i64, i64)>) -> usize {
    let mut edges: Vec<(i64, i64)> = times.flat_map(|(begin, end)| [(begin, -1), (end, 1)]).collect();
    // of equal times a beginning is first
    edges.sort_unstable();
    let mut now = 0;
    let counts = edges.iter().map(|(_, edge)| {
        now -= edge;
        now
    });
    counts.max().map_or(0, |most| usize::try_from(most).unwrap_or(0))
}

/// What stands before the lines of each: the machine, or the file if that does not tell them apart.
fn names(members: &[MergedTape]) -> Vec<Vec<u8>> {
    let mut hosts: Vec<&[u8]> = members.iter().map(|member| &*member.named.host).collect();
    hosts.sort_unstable();
    let by_host = hosts.windows(2).all(|pair| pair[0] != pair[1]) && hosts.iter().all(|host| !host.is_empty());
    let name = |member: &MergedTape| if by_host { escaped(&member.named.host) } else { member.named.name.clone() };
    let names: Vec<String> = members.iter().map(name).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    names.iter().map(|name| format!("{name:<width$} ").into_bytes()).collect()
}

struct Merge<'scope, 'env> {
    config: &'env Config,
    /// The tapes are of more than one day.
    dated: bool,
    scope: &'scope Scope<'scope, 'env>,
    /// Lines that may still be printed.
    left: u64,
    verdict: Verdict,
}

impl<'scope, 'env> Merge<'scope, 'env> {
    fn run(mut self, mut waiting: VecDeque<(MergedTape, Vec<u8>)>) -> Result<Verdict> {
        let mut out = Out::stdout(self.config.format)?;
        let mut sources: Vec<Source<'scope>> = Vec::new();
        while self.left > 0 {
            let next = sources.iter().map(|source| source.time).min();
            // one that begins before what is next may have lines before it
            let due = |(member, _): &(MergedTape, Vec<u8>)| next.is_none_or(|next| member.times.0 <= next);
            if waiting.front().is_some_and(due)
                && let Some((member, name)) = waiting.pop_front()
            {
                let (source, more) = self.begin(member, name)?;
                out.head(&source.head)?;
                if more {
                    sources.push(source);
                } else {
                    self.end(source)?;
                }
                continue;
            }
            let Some(at) = (0..sources.len()).min_by_key(|at| sources[*at].time) else { break };
            let others = sources.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, source)| source.time);
            let until = others.chain(waiting.front().map(|(member, _)| member.times.0)).min().unwrap_or(i64::MAX);
            if !sources[at].print(until, &mut self.left, &mut out)? {
                let source = sources.remove(at);
                self.end(source)?;
            }
        }
        sources.into_iter().try_for_each(|source| self.end(source))?;
        out.end()?;
        Ok(self.verdict)
    }

    /// Has the listing of `member` made. False: it has no line.
    fn begin(&self, member: MergedTape, name: Vec<u8>) -> Result<(Source<'scope>, bool)> {
        let (sender, pieces) = sync_channel(WAITING);
        let config = self.config.of_time(&member.path, self.dated);
        let label = match config.format {
            Format::Text => TapeLabel { cells: Vec::new(), text: name },
            Format::Json | Format::Csv => member.named.label(has_host(&config)),
        };
        let name_of = member.named.name.clone();
        let listing = move || -> Result<Verdict> {
            // waiting for its turn must not keep the threads of other tapes
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().context("cannot make a thread")?;
            let mut out = Out::merged(config.format, sender);
            out.begin(&name_of, label);
            pool.install(|| of_one(&config, open(&config.file), &mut out))
        };
        let thread = std::thread::Builder::new().spawn_scoped(self.scope, listing).context("cannot make a thread")?;
        let (time, head, front) = (member.times.0, Vec::new(), Part::default());
        let mut source = Source { clock: member.clock, pieces, thread, head, front, done: (0, 0), time };
        let more = source.fill();
        Ok((source, more))
    }

    /// Takes the verdict of one whose lines are printed, or of which no more are wanted.
    fn end(&mut self, Source { pieces, thread, .. }: Source<'_>) -> Result<()> {
        drop(pieces);
        match thread.join() {
            Ok(Err(error)) if output::is_closed_pipe(&error) => {}
            Ok(verdict) => self.verdict = self.verdict.and(verdict?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(())
    }
}

/// A tape whose listing is being made.
struct Source<'scope> {
    clock: Clock,
    pieces: Receiver<ListingPiece>,
    thread: ScopedJoinHandle<'scope, Result<Verdict>>,
    /// The head of its rows; empty: it has none.
    head: Vec<u8>,
    /// What is next.
    front: Part,
    /// Lines and bytes of it that are printed.
    done: (usize, usize),
    /// The time of day of what is next, ns since 1970: calls that began before the tape, and those before the clock was set
    /// back, stand where they can.
    time: i64,
}

impl Source<'_> {
    /// Prints what is next, and what follows it before `until`. False: that was all.
    fn print(&mut self, until: i64, left: &mut u64, out: &mut Out) -> Result<bool> {
        let mut bytes = Vec::new();
        loop {
            if let Some((_, to)) = self.front.marks.get(self.done.0) {
                bytes.extend_from_slice(&self.front.bytes[self.done.1..*to]);
                self.done = (self.done.0 + 1, *to);
                *left -= 1;
            }
            let more = self.fill();
            if !more || *left == 0 || self.time >= until || bytes.len() >= BUFFER {
                out.write_all(&bytes)?;
                return Ok(more);
            }
        }
    }

    /// Waits for what is next, and finds its time. False: there is nothing.
    fn fill(&mut self) -> bool {
        while self.done.0 >= self.front.marks.len() {
            match self.pieces.recv() {
                Ok(ListingPiece::Head(head)) => self.head = head,
                Ok(ListingPiece::Lines(part)) => (self.front, self.done) = (part, (0, 0)),
                Err(_) => return false,
            }
        }
        let time = self.front.marks.get(self.done.0).and_then(|(ts, _)| self.clock.real(*ts));
        self.time = time.map_or(self.time, |time| self.time.max(time.first));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tapes_of_one_time_are_counted() {
        let most = |times: &[(i64, i64)]| most_at_once(times.iter().copied());
        assert_eq!(most(&[]), 0);
        assert_eq!(most(&[(0, 10), (11, 20), (21, 30)]), 1);
        assert_eq!(most(&[(0, 10), (10, 20), (5, 6), (6, 30)]), 3);
        assert_eq!(most(&[(3, 3)]), 1);
    }
}
