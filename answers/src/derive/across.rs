//! Exchanges of connections between two machines, each seen on the tape of its own end: which of one are which of the other, and how far
//! apart the two clocks are.
//!
//! Nothing is known of the clocks beforehand. Bytes are not read before they were written: each exchange that is known on both tapes bounds
//! the difference from both sides, by its question and by its answer. Clocks that run apart ([`DRIFT`]) make bounds of one time weaker at
//! another. On a connection that began on both tapes the first exchange of one is the first of the other. Of an older one the two
//! sequences are laid side by side in all ways in which at least half of the shorter lies beside the other, and those remain in which sizes
//! agree and the bounds leave a difference: with pauses of different lengths that is one. Where several remain, other connections decide, or
//! it is not known.

use std::ops::Range;

use super::exchanges::{Amount, CutShort, EndSide, Exchange};

/// Parts per million by which two clocks may run apart: adjtimex(2) lets each slew by 500, and crystals differ by less than the rest.
const DRIFT: i64 = 1200;
/// Least exchanges that lie side by side, if the connection is older than one of the tapes.
const LEAST: usize = 8;
/// Most pairs of exchanges that are compared: seconds, whatever two tapes hold.
const MOST_PAIRS: usize = 1 << 28;
/// Most stretches of time whose bounds are kept, and the shortest of them, ns.
const STRETCHES: usize = 1 << 14;
const SHORTEST: i64 = 1_000_000;

/// One exchange as one end saw it, in ns of its tape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeSeen {
    /// When the first write began, at the end that asked; when the first bytes came, at the other.
    pub begin: u64,
    /// When the answer was read first, or its first write began; None: there is none.
    pub answered: Option<u64>,
    /// How long all of it took there; None: not known.
    pub total: Option<u64>,
    /// What came in.
    pub received: Amount,
    /// What went out.
    pub sent: Amount,
    /// The times are known.
    pub whole: bool,
    /// The exchange is the first of its connection.
    pub opens: bool,
    /// Calls of it may be lost, or those of another connection may be among them: it may be several.
    pub unsure: bool,
}

impl ExchangeSeen {
    /// What `exchange` is.
    pub fn of(exchange: &Exchange) -> Self {
        let phases = exchange.phases();
        Self {
            begin: if exchange.side == EndSide::Client { exchange.begin } else { exchange.since() },
            answered: exchange.answer.map(|(from, _)| from),
            total: phases.map(|phases| phases.whole()),
            received: exchange.received,
            sent: exchange.sent,
            whole: phases.is_some(),
            opens: exchange.connect.is_some(),
            unsure: matches!(exchange.cut, Some(CutShort::Gap | CutShort::Mixed)),
        }
    }
}

/// The exchanges of one pair of addresses, in order of time at each end.
#[derive(Clone, Debug, Default)]
pub struct SharedConnection {
    /// Exchanges of the end on the first tape.
    pub first: Vec<ExchangeSeen>,
    /// Exchanges of the end on the second tape.
    pub second: Vec<ExchangeSeen>,
    /// The end on the first tape asks.
    pub first_asks: bool,
}

/// How far the clock of the second tape is ahead of that of the first, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockBounds {
    /// Lower bound.
    pub least: i64,
    /// Upper bound.
    pub most: i64,
}

impl ClockBounds {
    const ANY: Self = Self { least: i64::MIN / 4, most: i64::MAX / 4 };

    fn narrow(&mut self, other: Self) {
        self.least = self.least.max(other.least);
        self.most = self.most.min(other.most);
    }

    /// The same after `ns` in which the clocks may have run apart.
    fn later(self, ns: i64) -> Self {
        let apart = apart(ns);
        Self { least: self.least - apart, most: self.most + apart }
    }

    fn is_possible(self) -> bool {
        self.least <= self.most
    }
}

/// How far two clocks run apart in `ns` at most.
fn apart(ns: i64) -> i64 {
    ns / 1_000_000 * DRIFT + (ns % 1_000_000) * DRIFT / 1_000_000 + 1
}

/// Exchanges of two sequences that may be the same: `len` from `first` and from `second` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Overlap {
    first: usize,
    second: usize,
    len: usize,
}

impl Overlap {
    fn firsts(&self) -> Range<usize> {
        self.first..self.first + self.len
    }

    fn seconds(&self) -> Range<usize> {
        self.second..self.second + self.len
    }
}

/// Bounds by one exchange, and its time on the first tape; None: it says nothing. Err: the two are not the same.
fn says(one: &ExchangeSeen, other: &ExchangeSeen, first_asks: bool) -> Result<Option<(i64, ClockBounds)>, ()> {
    if !one.whole || !other.whole {
        return Ok(None);
    }
    let same = |sent: Amount, received: Amount| sent.short || received.short || sent.bytes == received.bytes;
    if !same(one.sent, other.received) || !same(other.sent, one.received) {
        return Err(());
    }
    let ahead = |other: u64, one: u64| (other as i64).wrapping_sub(one as i64);
    let (question, answer) = (ahead(other.begin, one.begin), one.answered.zip(other.answered));
    let answer = answer.map(|(one, other)| ahead(other, one));
    let mut bounds = ClockBounds::ANY;
    // who asks is read later than it wrote, by a clock that is so far ahead
    bounds.narrow(match first_asks {
        true => ClockBounds { least: answer.unwrap_or(bounds.least), most: question },
        false => ClockBounds { least: question, most: answer.unwrap_or(bounds.most) },
    });
    Ok(Some((one.begin as i64, bounds)))
}

/// What exchanges side by side say beside what is known, `clocks`; None: they cannot be the same.
fn beside(
    (one, other): (&[ExchangeSeen], &[ExchangeSeen]),
    first_asks: bool,
    clocks: Option<&ClockDifference>,
    pairs: &mut usize,
) -> Option<ClockBounds> {
    let mut known: Option<(i64, ClockBounds)> = None;
    for (one, other) in one.iter().zip(other) {
        *pairs = pairs.checked_sub(1)?;
        if let Some((ts, more)) = says(one, other, first_asks).ok()? {
            let mut bounds = known.map_or(ClockBounds::ANY, |(at, bounds)| bounds.later((ts - at).abs()));
            bounds.narrow(more);
            if let Some(clocks) = clocks {
                bounds.narrow(clocks.at(ts));
            }
            if !bounds.is_possible() {
                return None;
            }
            known = Some((ts, bounds));
        }
    }
    known.map(|(_, bounds)| bounds)
}

/// Stretches of `seen` in which one exchange follows the other: of one connection, without doubt about how many there were.
fn stretches(seen: &[ExchangeSeen]) -> Vec<Range<usize>> {
    let (mut all, mut from) = (Vec::new(), 0);
    for (at, one) in seen.iter().enumerate() {
        if one.opens || one.unsure {
            all.push(from..at);
            from = if one.unsure { at + 1 } else { at };
        }
    }
    all.push(from..seen.len());
    all.retain(|range| !range.is_empty());
    all
}

impl SharedConnection {
    /// The ways in which a stretch of the first tape lies beside one of the second, where there is only one; whether a stretch is left that
    /// has none.
    fn ways(&self, clocks: Option<&ClockDifference>, pairs: &mut usize) -> (Vec<Overlap>, bool) {
        let others = stretches(&self.second);
        let (mut known, mut unsure): (Vec<Overlap>, bool) = (Vec::new(), false);
        for one in stretches(&self.first) {
            let before = known.len();
            for other in &others {
                let mut ways = self.ways_of(&one, other);
                let mut next = || ways.find(|way| beside(self.sides(way), self.first_asks, clocks, pairs).is_some());
                let (way, more) = (next(), next().is_some());
                match way {
                    Some(way) if !more => known.push(way),
                    Some(_) => unsure = true,
                    None => {}
                }
            }
            unsure |= known.len() == before;
        }
        // an exchange is one of the other tape's: of two ways that say otherwise one is wrong
        let meets = |one: Range<usize>, other: Range<usize>| one.start < other.end && other.start < one.end;
        let clash = |one: &Overlap, other: &Overlap| {
            one != other && (meets(one.firsts(), other.firsts()) || meets(one.seconds(), other.seconds()))
        };
        let all = known.clone();
        known.retain(|way| *pairs > 0 && !all.iter().any(|other| clash(way, other)));
        let clashed = known.len() != all.len();
        (known, unsure || clashed)
    }

    /// All ways in which stretches may lie beside each other by their lengths.
    fn ways_of(&self, one: &Range<usize>, other: &Range<usize>) -> impl Iterator<Item = Overlap> + use<> {
        let (begun, other_begun) = (self.first[one.start].opens, self.second[other.start].opens);
        let (len, other_len) = (one.len(), other.len());
        let least = if begun && other_begun { 1 } else { (len.min(other_len).div_ceil(2)).max(LEAST) };
        // the second's exchange that lies beside the first's first, if that is not negative; else the other way round
        let shifts = match (begun, other_begun) {
            (true, true) => 0..=0,
            (true, false) => 0..=other_len as i64 - 1,
            (false, true) => 1 - len as i64..=0,
            (false, false) => 1 - len as i64..=other_len as i64 - 1,
        };
        let (start, other_start) = (one.start, other.start);
        shifts.filter_map(move |shift| {
            let (from, other_from) = ((-shift).max(0) as usize, shift.max(0) as usize);
            let len = (len - from).min(other_len - other_from);
            (len >= least).then_some(Overlap { first: start + from, second: other_start + other_from, len })
        })
    }

    fn sides(&self, way: &Overlap) -> (&[ExchangeSeen], &[ExchangeSeen]) {
        (&self.first[way.firsts()], &self.second[way.seconds()])
    }
}

/// Bounds of the difference over time.
#[derive(Clone, Debug)]
pub struct ClockDifference {
    from: i64,
    width: i64,
    bounds: Vec<ClockBounds>,
}

impl ClockDifference {
    /// What exchanges say together: their times on the first tape, and their bounds. None: they contradict each other.
    fn of(said: &[(i64, ClockBounds)]) -> Option<Self> {
        let from = said.iter().map(|(at, _)| *at).min()?;
        let to = said.iter().map(|(at, _)| *at).max()?;
        let width = ((to - from) / STRETCHES as i64 + 1).max(SHORTEST);
        let mut bounds = vec![ClockBounds::ANY; ((to - from) / width + 1) as usize];
        for (at, more) in said {
            // true at its own time, and so much less at any other of the stretch
            bounds[((at - from) / width) as usize].narrow(more.later(width));
        }
        let step = |bounds: &mut [ClockBounds], at: usize, near: usize| {
            let more = bounds[near].later(width);
            bounds[at].narrow(more);
        };
        (1..bounds.len()).for_each(|at| step(&mut bounds, at, at - 1));
        (1..bounds.len()).rev().for_each(|at| step(&mut bounds, at - 1, at));
        bounds.iter().all(|one| one.is_possible()).then_some(Self { from, width, bounds })
    }

    /// The bounds at a time of the first tape.
    pub fn at(&self, ts: i64) -> ClockBounds {
        let last = self.bounds.len() as i64 - 1;
        let nearest = ((ts - self.from) / self.width).clamp(0, last);
        let away = (ts - (self.from + nearest * self.width)).abs().saturating_sub(self.width).max(0);
        self.bounds[nearest as usize].later(away)
    }

    /// The narrowest bounds, and when they hold.
    pub fn narrowest(&self) -> (i64, ClockBounds) {
        let (at, bounds) =
            self.bounds.iter().enumerate().min_by_key(|(_, one)| one.most - one.least).expect("not empty");
        (self.from + at as i64 * self.width, *bounds)
    }
}

/// An exchange on both tapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedExchange {
    /// Number of its connection.
    pub connection: usize,
    /// Place among the connection's exchanges of the first tape.
    pub first: usize,
    /// Place among those of the second.
    pub second: usize,
}

/// What two tapes have in common.
#[derive(Clone, Debug)]
pub struct SharedExchanges {
    /// Exchanges that are on both.
    pub exchanges: Vec<SharedExchange>,
    /// How far apart the clocks are.
    pub clocks: ClockDifference,
    /// Number of connections with exchanges of which it is not known which of the other tape they are.
    pub unsure: usize,
}

/// What the exchanges of these say of the clocks, with their times on the first tape.
fn said(connections: &[SharedConnection], known: &[(usize, Overlap)]) -> Vec<(i64, ClockBounds)> {
    let each = known.iter().flat_map(|(number, way)| {
        let of = &connections[*number];
        let (one, other) = of.sides(way);
        one.iter().zip(other).filter_map(|(one, other)| says(one, other, of.first_asks).ok().flatten())
    });
    each.collect()
}

/// Finds the exchanges that are on both tapes. None: none is known to be.
///
/// # Errors
/// What is known of the clocks contradicts itself, so nothing is known: two connections have the same addresses, or a machine slept.
pub fn join(connections: &[SharedConnection]) -> Result<Option<SharedExchanges>, ClocksContradict> {
    let mut pairs = MOST_PAIRS;
    let (mut known, mut open) = (Vec::new(), Vec::new());
    for (number, connection) in connections.iter().enumerate() {
        let (ways, unsure) = connection.ways(None, &mut pairs);
        if unsure {
            open.push(number);
        }
        known.extend(ways.into_iter().map(|way| (number, way)));
    }
    if known.is_empty() {
        return Ok(None);
    }
    let mut clocks = ClockDifference::of(&said(connections, &known)).ok_or(ClocksContradict)?;
    let mut unsure = 0;
    for number in open {
        // the others say how far apart the clocks are
        let (ways, left) = connections[number].ways(Some(&clocks), &mut pairs);
        known.retain(|(of, _)| *of != number);
        known.extend(ways.into_iter().map(|way| (number, way)));
        unsure += usize::from(left);
    }
    clocks = ClockDifference::of(&said(connections, &known)).ok_or(ClocksContradict)?;
    let places = known.iter().flat_map(|(connection, way)| {
        let places = way.firsts().zip(way.seconds());
        places.map(|(first, second)| SharedExchange { connection: *connection, first, second })
    });
    let mut exchanges: Vec<SharedExchange> = places.collect();
    exchanges.sort_by_key(|one| (one.connection, one.first));
    Ok(Some(SharedExchanges { exchanges, clocks, unsure }))
}

/// What exchanges say of two clocks cannot all be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClocksContradict;

#[cfg(test)]
mod tests;
