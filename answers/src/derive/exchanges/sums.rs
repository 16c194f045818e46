//! Sums of exchanges of one key.

use super::{CutShort, Exchange, Phases};
use crate::derive::summary::hist::Histogram;
use systape_events::group::Add;
use systape_events::values::spill::{Stored, put_number, take_u64};

/// Durations of one kind.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    /// How often which.
    pub hist: Histogram,
    /// The longest, ns.
    pub max: u64,
}

impl Spread {
    /// One more.
    pub fn add(&mut self, ns: u64) {
        self.hist.add(ns);
        self.max = self.max.max(ns);
    }

    fn merge(&mut self, other: &Self) {
        self.hist.merge(&other.hist);
        self.max = self.max.max(other.max);
    }

    /// The value below which `permille` of 1000 are, no more than the longest; None: there are none.
    pub fn quantile(&self, permille: u64) -> Option<u64> {
        self.hist.quantile(permille).map(|value| value.min(self.max))
    }
}

/// Exchanges of one key.
#[derive(Clone, Debug, Default)]
pub struct ExchangeSums {
    /// How many, with those that have no times.
    pub count: u64,
    /// Number of these whose times are known.
    pub timed: u64,
    /// Number of these of which a call failed, or which were not answered.
    pub troubles: u64,
    /// Number of the troubles that were not answered.
    pub unanswered: u64,
    /// Bytes that came in, and whether there may be more.
    pub received: (u64, bool),
    /// Bytes that went out.
    pub sent: (u64, bool),
    /// Whole times.
    pub whole: Spread,
    /// Times of what was asked.
    pub asking: Spread,
    /// Times between that and the answer.
    pub between: Spread,
    /// Times of answers.
    pub answering: Spread,
    /// Times of connecting, at servers until the connection was accepted.
    pub connect: Spread,
    /// Times from when bytes came until they were read.
    pub queued: Spread,
    /// Times for which the last bytes were held back.
    pub held: Spread,
    /// Times until all of an answer had arrived.
    pub drain: Spread,
}

impl ExchangeSums {
    /// One exchange.
    pub fn count(&mut self, exchange: &Exchange) {
        self.count += 1;
        self.timed += u64::from(exchange.phases().is_some());
        self.troubles += u64::from(exchange.trouble.is_some());
        self.unanswered += u64::from(exchange.trouble == Some(super::Trouble::Unanswered));
        // where a call is lost, two exchanges look like one: what it moved may be that of another second, or thread
        let unsure = exchange.cut == Some(CutShort::Gap);
        for (sum, more) in [(&mut self.received, exchange.received), (&mut self.sent, exchange.sent)] {
            let bytes = if unsure { 0 } else { more.bytes };
            *sum = (sum.0.saturating_add(bytes), sum.1 | more.short | unsure);
        }
        if let Some(ns) = exchange.connect {
            self.connect.add(ns);
        }
        let Some(phases) = exchange.phases() else { return };
        let Phases { asking, between, answering, queued, held, drain } = phases;
        self.whole.add(phases.whole());
        for (spread, ns) in [(&mut self.queued, queued), (&mut self.held, held), (&mut self.drain, drain)] {
            if let Some(ns) = ns {
                spread.add(ns);
            }
        }
        self.asking.add(asking);
        self.between.add(between);
        self.answering.add(answering);
    }

    fn spreads(&self) -> [&Spread; 8] {
        [
            &self.whole,
            &self.asking,
            &self.between,
            &self.answering,
            &self.connect,
            &self.queued,
            &self.held,
            &self.drain,
        ]
    }

    fn spreads_mut(&mut self) -> [&mut Spread; 8] {
        [
            &mut self.whole,
            &mut self.asking,
            &mut self.between,
            &mut self.answering,
            &mut self.connect,
            &mut self.queued,
            &mut self.held,
            &mut self.drain,
        ]
    }
}

impl Add for ExchangeSums {
    fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.count, other.count),
            (&mut self.timed, other.timed),
            (&mut self.troubles, other.troubles),
            (&mut self.unanswered, other.unanswered),
        ] {
            *sum = sum.saturating_add(more);
        }
        for (sum, more) in [(&mut self.received, other.received), (&mut self.sent, other.sent)] {
            *sum = (sum.0.saturating_add(more.0), sum.1 | more.1);
        }
        self.spreads_mut().into_iter().zip(other.spreads()).for_each(|(sum, more)| sum.merge(more));
    }
}

impl Stored for ExchangeSums {
    fn put(&self, out: &mut Vec<u8>) {
        let numbers = [self.count, self.timed, self.troubles, self.unanswered, self.received.0, self.sent.0];
        numbers.into_iter().for_each(|number| put_number(number.into(), out));
        out.extend([u8::from(self.received.1), u8::from(self.sent.1)]);
        for spread in self.spreads() {
            spread.hist.put(out);
            put_number(spread.max.into(), out);
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let numbers = [(); 6].map(|()| take_u64(from));
        let [count, timed, troubles, unanswered, received, sent] = numbers;
        let mut flag = || Some(*from.split_off_first()? != 0);
        let short = [flag()?, flag()?];
        let mut sums = Self {
            count: count?,
            timed: timed?,
            troubles: troubles?,
            unanswered: unanswered?,
            received: (received?, short[0]),
            sent: (sent?, short[1]),
            ..Self::default()
        };
        for spread in sums.spreads_mut() {
            *spread = Spread { hist: Histogram::take(from)?, max: take_u64(from)? };
        }
        Some(sums)
    }

    fn heap(&self) -> usize {
        self.spreads().iter().map(|one| one.hist.heap()).sum()
    }
}
