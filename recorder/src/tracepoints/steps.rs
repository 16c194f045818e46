//! A filter as the program of any tracepoint evaluates it (tracepoints.bpf.h): a short list of steps, each of which compares some bits of
//! the record and says which step is next. Steps lead forward only.
//!
//! What is too hard for it (globs, texts behind the record's fixed part) is taken to hold there, so that no event is missed. The recorder
//! looks at what comes through with the whole filter.

use systape_abi::condition::Comparison;
use systape_bpf::wire::{FILTER_DROP, FILTER_PASS, FILTER_STEPS, FilterStep, TracepointFilter};

use super::filter::{RecordCondition, Test, What};
use super::format::{Place, TracepointField};

/// Bytes of a step's word.
const WORD: usize = 8;
/// A step must not read behind a record's end.
const END: usize = systape_bpf::TRACEPOINT_DATA as usize;
const MOST: usize = FILTER_STEPS as usize;

/// A filter's steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilterProgram {
    first: u8,
    steps: Vec<Step>,
    /// The steps let events through for which the filter does not hold.
    pub partial: bool,
}

/// Whether `((word at `at` & mask) - low) & wide <= span`: a range of numbers of any width, with a sign or without, or some bytes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    at: usize,
    mask: u64,
    low: u64,
    wide: u64,
    span: u64,
    yes: u8,
    no: u8,
}

/// Where a filter goes on: the steps are made from the last one on, so a step is known by how many come behind it.
#[derive(Clone, Copy)]
enum Next {
    Pass,
    Drop,
    Step(usize),
}

impl FilterProgram {
    /// The steps of `filter`. With too many of them there are none, and the recorder does it all.
    pub(crate) fn new(filter: &RecordCondition) -> Self {
        let mut maker = StepMaker::default();
        let first = maker.condition(filter, Next::Pass, Next::Drop, false);
        let count = maker.steps.len();
        if count > MOST {
            return Self { first: FILTER_PASS, steps: Vec::new(), partial: true };
        }
        let index = |next: Next| match next {
            Next::Pass => FILTER_PASS,
            Next::Drop => FILTER_DROP,
            Next::Step(behind) => (count - 1 - behind) as u8,
        };
        let steps = maker.steps.iter().rev().map(|(step, yes, no)| Step { yes: index(*yes), no: index(*no), ..*step });
        Self { first: index(first), steps: steps.collect(), partial: maker.partial }
    }

    /// Steps as the program takes them.
    pub(crate) fn entry(&self) -> TracepointFilter {
        let mut entry = TracepointFilter { first: self.first.into(), ..TracepointFilter::default() };
        for (to, step) in entry.steps.iter_mut().zip(&self.steps) {
            let Step { at, mask, low, wide, span, yes, no } = *step;
            *to = FilterStep { mask, low, wide, span, at: at as u16, yes, no, ..FilterStep::default() };
        }
        entry
    }
}

#[derive(Default)]
struct StepMaker {
    /// The last one first.
    steps: Vec<(Step, Next, Next)>,
    partial: bool,
}

impl StepMaker {
    /// Adds the steps of a condition in front of those there are; returns where it begins. `negated`: it is in a `!`, so that `no` lets
    /// the event through.
    fn condition(&mut self, condition: &RecordCondition, yes: Next, no: Next, negated: bool) -> Next {
        match condition {
            RecordCondition::Test(test) => self.test(test, yes, no, negated),
            RecordCondition::Not(inner) => self.condition(inner, no, yes, !negated),
            RecordCondition::All(all) => all.iter().rev().fold(yes, |next, one| self.condition(one, next, no, negated)),
            RecordCondition::Any(any) => any.iter().rev().fold(no, |next, one| self.condition(one, yes, next, negated)),
        }
    }

    fn test(&mut self, test: &Test, yes: Next, no: Next, negated: bool) -> Next {
        let field = &test.field;
        let comparisons = match &test.what {
            _ if field.place != Place::Fixed || field.offset + field.size + WORD > END => None,
            What::Number(order, number) => Some(of_number(field, *order, *number)),
            What::Text(text) => Some(of_text(field.offset, field.size, text.as_bytes(), true)),
            What::Glob(glob) => match glob.strip_suffix('*') {
                Some(begins) if !begins.contains(['*', '?', '[']) => {
                    Some(of_text(field.offset, field.size, begins.as_bytes(), false))
                }
                _ => None,
            },
        };
        match comparisons {
            Some(Some(all)) => all.into_iter().rev().fold(yes, |next, step| {
                self.steps.push((step, next, no));
                Next::Step(self.steps.len() - 1)
            }),
            // it never holds
            Some(None) => no,
            None => {
                self.partial = true;
                if negated { no } else { yes }
            }
        }
    }
}

/// A step that takes the numbers from `low` to `span` more.
fn step(at: usize, mask: u64, low: u64, wide: u64, span: u64) -> Step {
    Step { at, mask, low, wide, span, yes: FILTER_PASS, no: FILTER_DROP }
}

/// The comparison of a number; None = it never holds.
fn of_number(field: &TracepointField, order: Comparison, number: i128) -> Option<Vec<Step>> {
    let wide = u64::MAX >> (64 - 8 * field.size as u32);
    let (least, most) = field.range();
    let (low, high) = match order {
        Comparison::Equal => (number, number),
        Comparison::Less => (least, number - 1),
        Comparison::LessOrEqual => (least, number),
        Comparison::Greater => (number + 1, most),
        Comparison::GreaterOrEqual => (number, most),
        // all but 0
        Comparison::Bits => {
            let bits = number as u64 & wide;
            return (bits != 0).then(|| vec![step(field.offset, bits, 1, u64::MAX, u64::MAX - 1)]);
        }
        // of texts only
        Comparison::Glob => return None,
    };
    // the lowest bits of a negative number are those above all others: the range wraps there
    (low <= high).then(|| vec![step(field.offset, wide, low as u64 & wide, wide, (high - low) as u64)])
}

/// The comparison of a text's bytes, with the NUL behind it if it `ends` there; None = the field has no room for it.
fn of_text(at: usize, size: usize, text: &[u8], ends: bool) -> Option<Vec<Step>> {
    let mut text = text.to_vec();
    if text.len() > size {
        return None;
    }
    if ends && text.len() < size {
        text.push(0);
    }
    let words = text.chunks(WORD).enumerate().map(|(i, bytes)| {
        let mut word = [0; WORD];
        word[..bytes.len()].copy_from_slice(bytes);
        let mask = u64::MAX >> (64 - 8 * bytes.len() as u32);
        step(at + i * WORD, mask, u64::from_ne_bytes(word), u64::MAX, 0)
    });
    Some(words.collect())
}

#[cfg(test)]
mod tests {
    use super::super::{filter, format};
    use super::*;

    const TEXT: &str = "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:short code;\toffset:24;\tsize:2;\tsigned:1;\n\
        \tfield:unsigned char kind;\toffset:26;\tsize:1;\tsigned:0;\n\
        \tfield:long where;\toffset:32;\tsize:8;\tsigned:1;\n\
        \tfield:unsigned long address;\toffset:40;\tsize:8;\tsigned:0;\n\
        \tfield:int value;\toffset:48;\tsize:4;\tsigned:1;\n\
        \tfield:__data_loc char[] path;\toffset:52;\tsize:4;\tsigned:0;\n";

    /// What the program does.
    fn run(program: &TracepointFilter, record: &[u8]) -> bool {
        let mut next = program.first as u8;
        for _ in 0..FILTER_STEPS {
            let Some(step) = program.steps.get(usize::from(next)) else { break };
            let word = u64::from_ne_bytes(record[usize::from(step.at)..][..8].try_into().unwrap());
            let holds = ((word & step.mask).wrapping_sub(step.low) & step.wide) <= step.span;
            next = if holds { step.yes } else { step.no };
        }
        next == FILTER_PASS
    }

    fn record(comm: &str, [code, kind, long, address, value]: [i64; 5], path: &str) -> Vec<u8> {
        let mut record = vec![0xff; 64];
        record[..8].copy_from_slice(&[3, 0, 0, 0, 0x39, 0x30, 0, 0]);
        record[8..24].fill(0);
        record[8..8 + comm.len()].copy_from_slice(comm.as_bytes());
        record[24..26].copy_from_slice(&(code as i16).to_ne_bytes());
        record[26] = kind as u8;
        record[32..40].copy_from_slice(&long.to_ne_bytes());
        record[40..48].copy_from_slice(&address.to_ne_bytes());
        record[48..52].copy_from_slice(&(value as i32).to_ne_bytes());
        record[52..56].copy_from_slice(&(56 | (path.len() as u32 + 1) << 16).to_ne_bytes());
        record.truncate(56);
        record.extend(path.bytes().chain([0; 9]));
        record
    }

    fn made(text: &str) -> (RecordCondition, FilterProgram) {
        let condition = filter::parse(text, &format::parse(TEXT).unwrap()).unwrap_or_else(|e| panic!("{text}: {e}"));
        let program = FilterProgram::new(&condition);
        (condition, program)
    }

    /// Whether the steps, and the whole filter, let a record of a few values through.
    fn both(text: &str) -> (bool, bool) {
        let (condition, program) = made(text);
        let record = record("bash", [-3, 200, i64::MIN, -1, 1000], "/tmp/a,b");
        (run(&program.entry(), &record), filter::holds(&condition, &record).unwrap())
    }

    #[test]
    fn what_a_filter_says_is_what_its_steps_do() {
        let yes = [
            "comm == \"bash\"",
            "comm ~ 'ba*'",
            "comm != \"bas\"",
            "comm!='bashed'",
            "comm ~ \"*\"",
            "comm ~ '!sh*'",
            "code == -3",
            "code == 0xfffd",
            "code < 0",
            "code >= -3",
            "code & 0x8000",
            "code != 3",
            "code <= -1",
            "kind == 200",
            "kind > 127",
            "kind == 0xC8",
            "kind & 8",
            "kind == 0310",
            "kind <= 255",
            "kind >= 0",
            "where == -9223372036854775808",
            "where < 0",
            "where <= -9223372036854775808",
            "where & 0x8000000000000000",
            "address == 0xffffffffffffffff",
            "address > 0x7fffffffffffffff",
            "address & 1",
            "value == 1000 && kind==200",
            "common_pid == 12345",
            "cpu == 3 && CPU==3 && common_cpu<4",
            "value > 5 || nothing",
            "!(value < 5) && !(kind==1)",
        ];
        for text in yes.iter().map(|text| text.replace("nothing", "kind == 1")) {
            assert_eq!(both(&text), (true, true), "{text}");
            assert_eq!(both(&format!("!({text})")), (false, false), "{text}");
            assert!(!made(&text).1.partial, "{text}");
        }
        for text in ["kind < 0", "address < 0", "where > 9223372036854775807", "code > 32767", "kind & 0", "kind > 255"]
        {
            assert_eq!(both(text), (false, false), "{text}");
            assert_eq!(both(&format!("!({text})")), (true, true), "{text}");
        }
        assert_eq!(both("comm == '0123456789abcdefg'"), (false, false), "longer than the field");
        assert_eq!(both("value == 1 || (value == 1000 && (kind == 1 || code < 0))"), (true, true));
    }

    #[test]
    fn what_is_too_hard_for_the_program_passes_it() {
        for (text, expected) in [
            ("path == '/tmp/a,b'", (true, true)),
            ("path ~ '*.c'", (true, false)),
            ("!(path ~ '/tmp/*')", (true, false)),
            ("comm ~ 'b*h' && value == 1000", (true, true)),
            ("comm ~ 'b?h' || value == 1", (true, false)),
            ("path ~ '/tmp/[a-c],*' && value == 1", (false, false)),
            ("!(path ~ '/tmp/*' || value == 1000)", (false, false)),
            ("!(path ~ '/var/*' && value == 1000)", (true, true)),
        ] {
            assert_eq!(both(text), expected, "{text}");
            assert!(made(text).1.partial, "{text}");
        }
        let many = |count: usize| (0..count).map(|n| format!("value=={n}")).collect::<Vec<_>>().join("||");
        assert!(!made(&many(16)).1.partial && made(&many(17)).1.partial);
        assert_eq!(both(&many(17)), (true, false));
        assert_eq!(both(&many(16)), (false, false));
    }

    #[test]
    fn a_text_that_is_cut_may_be_any() {
        let (condition, _) = made("path == '/tmp/x' && value == 7");
        let whole = record("x", [0, 0, 0, 0, 7], "/tmp/x");
        assert_eq!((filter::holds(&condition, &whole), filter::holds(&condition, &whole[..58])), (Some(true), None));
        let other = record("x", [0, 0, 0, 0, 8], "/tmp/x");
        assert_eq!(filter::holds(&condition, &other[..58]), Some(false), "the number decides");
    }

    #[test]
    fn any_filter_is_evaluated_alike_by_both() {
        let mut seed = 7u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let values = [-2147483648i64, -32768, -129, -128, -3, -1, 0, 1, 2, 127, 128, 200, 255, 1000, 32767];
        for _ in 0..20_000 {
            let mut text = String::new();
            let tests = 1 + random(5);
            for at in 0..tests {
                let field = ["code", "where", "value", "common_pid"][random(4) as usize];
                let operator = ["==", "!=", "<", "<=", ">", ">=", "&"][random(7) as usize];
                let value = values[random(values.len() as u64) as usize].clamp(-32768, 32767);
                let not = if random(4) == 0 { "!" } else { "" };
                let join = ["", " && ", " || "][if at == 0 { 0 } else { 1 + random(2) as usize }];
                text += &format!("{join}{not}{field} {operator} {value}");
            }
            let (condition, program) = made(&text);
            let mut value = || values[random(values.len() as u64) as usize];
            let record = record("", [value(), value(), value(), value(), value()], "");
            assert_eq!(Some(run(&program.entry(), &record)), filter::holds(&condition, &record), "{text}");
        }
    }
}
