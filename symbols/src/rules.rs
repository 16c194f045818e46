//! Unwind rules and build ids of files, asked of a child process that parses them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use systape_unwind::{Facts, Registers, RuleSource, Segments, StackCopy, Stepped, UnwindEnd};

use crate::carrier::{Carrier, Unread};
use crate::deadline::Deadline;
use crate::ident::Ident;
use crate::process::{AnswerFailure, RunningChild, Terms, Within};
use crate::wire::{self, MessageIn, MessageOut};

/// Most memory of the child's own, bytes.
const MEMORY: u64 = 384 << 20;
/// Most CPU time for a file, or for some thousand questions.
const CPU: Duration = Duration::from_secs(10);
/// Longest start of the child, which reads no file of others.
const START: Duration = Duration::from_secs(10);
/// Longest wait for an answer; it is halved with each that did not come, so often.
const PATIENCE: Duration = Duration::from_millis(500);
const HALVED: u32 = 3;
/// Most rows of a file that are kept, about 100 bytes each.
const MOST_ROWS: usize = 16 << 10;
/// What a question costs of a stack's budget at least, because a process has to be asked.
const QUESTION: u64 = 64;

/// Asks a child process for what unwinding needs of files. Who has the same one shares the child.
#[derive(Clone, Debug)]
pub struct RuleReader(Arc<Mutex<Asked>>);

#[derive(Debug)]
struct Asked {
    command: Vec<OsString>,
    carrier: Carrier,
    child: Option<RunningChild>,
    /// Of the child: files have their numbers in one of them only.
    generation: u64,
    /// Answers that did not come.
    hangs: u32,
    lost: Option<Lost>,
}

/// A child ended, and no [`FileRules`] is answered any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The file that it was asked about, if that was one with a number.
    pub by: Option<u32>,
}

impl RuleReader {
    /// `command` as for [`Resolver::new`](crate::Resolver::new). The child starts with the first file; `carrier` opens those.
    pub fn new(command: Vec<OsString>, carrier: Carrier) -> Self {
        Self(Arc::new(Mutex::new(Asked { command, carrier, child: None, generation: 0, hangs: 0, lost: None })))
    }

    /// Who opens its files.
    pub fn carrier(&self) -> Carrier {
        self.asked().carrier.clone()
    }

    /// Starts the child now, as one of this thread, with which it ends; otherwise the first file does.
    pub fn begin(&self) {
        let mut asked = self.asked();
        asked.carrier.begin();
        let _ = asked.start();
    }

    /// Whether a file is ELF, and its build id.
    ///
    /// # Errors
    /// See [`Unread`].
    pub fn ident(&self, file: &File) -> Result<Ident, Unread> {
        let mut asked = self.asked();
        asked.start()?;
        let parse = |input: &mut MessageIn<'_>| {
            Some(Ident { elf: input.u8()? != 0, build_id: input.bytes(wire::LONGEST_ID)?.to_vec() })
        };
        Ok(asked.ask(&MessageOut::new(wire::IDENT), Some(file), None, parse)?)
    }

    /// The unwind information of a file, at most `most` bytes. `number` takes the place of an earlier one.
    ///
    /// # Errors
    /// See [`Unread`].
    pub fn open(&self, number: u32, file: &File, most: u64) -> Result<FileRules, Unread> {
        let mut asked = self.asked();
        asked.start()?;
        let mut request = MessageOut::new(wire::UNWIND);
        request.u32(number);
        request.u64(most);
        let (has_rules, memory, segments) = asked.ask(&request, Some(file), Some(number), |input| {
            let (has_rules, memory) = (input.u8()? != 0, input.u64()?);
            Some((has_rules, memory, Segments::from_bytes(input.bytes(wire::MOST_SEGMENTS)?)?))
        })?;
        let generation = asked.generation;
        drop(asked);
        Ok(FileRules { reader: self.clone(), generation, number, has_rules, memory, segments, rows: Mutex::default() })
    }

    /// No file has a number any more.
    pub fn forget(&self) {
        let mut asked = self.asked();
        // the next one has another child's files, if any
        asked.generation += 1;
        if asked.child.is_some() {
            let _ = asked.ask(&MessageOut::new(wire::FORGET), None, None, |_| Some(()));
        }
        asked.lost = None;
    }

    /// Whether a child ended since the last time.
    pub fn take_lost(&self) -> Option<Lost> {
        self.asked().lost.take()
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asked {
    fn start(&mut self) -> Result<(), AnswerFailure> {
        if !self.child.as_mut().is_some_and(RunningChild::is_alive) {
            self.lose(None);
            let (command, carrier) = (&self.command, Some(Arc::new(self.carrier.clone()) as _));
            let terms = Terms { command, memory: MEMORY, cpu: CPU, debug_dirs: &[], gives_way: false, carrier };
            let within = Within { patience: START, deadline: &Deadline::default() };
            self.child = Some(RunningChild::start(&terms, within)?);
        }
        Ok(())
    }

    fn lose(&mut self, by: Option<u32>) {
        if self.child.take().is_some() {
            self.generation += 1;
            self.lost = Some(Lost { by });
        }
    }

    /// `parse` takes the answer apart, all of it.
    fn ask<T>(
        &mut self,
        request: &MessageOut,
        file: Option<&File>,
        number: Option<u32>,
        parse: impl FnOnce(&mut MessageIn<'_>) -> Option<T>,
    ) -> Result<T, AnswerFailure> {
        let Some(child) = &mut self.child else { return Err(AnswerFailure::Broken("is not there".into())) };
        let within = Within { patience: PATIENCE / (1 << self.hangs.min(HALVED)), deadline: &Deadline::default() };
        let answer = child.request(request, file.map(AsFd::as_fd), within, &mut |_| None);
        let parsed = answer.and_then(|answer| {
            let mut input = MessageIn(&answer);
            parse(&mut input).filter(|_| input.0.is_empty()).ok_or_else(|| AnswerFailure::nonsense("a damaged answer"))
        });
        if let Err(failure) = &parsed {
            self.hangs += u32::from(*failure == AnswerFailure::TooLong);
            if !matches!(failure, AnswerFailure::Said(_) | AnswerFailure::NotOpened) {
                self.lose(number);
            }
        }
        parsed
    }
}

/// The unwind rules of a file, which the child has.
#[derive(Debug)]
pub struct FileRules {
    reader: RuleReader,
    generation: u64,
    number: u32,
    has_rules: bool,
    memory: u64,
    segments: Segments,
    rows: Mutex<Rows>,
}

/// Rows of rules, so that the child is asked once for each, not for each of its addresses.
#[derive(Debug, Default)]
struct Rows(BTreeMap<u64, (u64, Facts)>);

impl Rows {
    /// What is known of an address inside of a row; a function may begin at its first.
    fn of(&self, address: u64) -> Option<Facts> {
        let (_, (end, facts)) = self.0.range(..address).next_back()?;
        (address < *end).then_some(*facts)
    }

    fn add(&mut self, first: u64, end: u64, facts: Facts) {
        if self.0.len() >= MOST_ROWS {
            self.0.clear();
        }
        self.0.insert(first, (end, facts));
    }
}

impl FileRules {
    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Address of an offset, by [`Segments::address_of`].
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        self.segments.address_of(offset)
    }

    /// Bytes of memory that the child uses for it.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// The answer to a question about an address; None = there is none, and the child is lost. What it cost is taken from `budget`.
    fn ask<T>(
        &self,
        kind: u8,
        (address, budget, extra): (u64, &mut u64, u64),
        more: impl FnOnce(&mut MessageOut),
        parse: impl FnOnce(&mut MessageIn<'_>) -> Option<T>,
    ) -> Option<T> {
        let mut asked = self.reader.asked();
        *budget = budget.checked_sub(QUESTION.saturating_add(extra))?;
        if asked.generation != self.generation {
            asked.lost.get_or_insert(Lost { by: None });
            return None;
        }
        let mut request = MessageOut::new(kind);
        request.u32(self.number);
        request.u64(address);
        request.u64(*budget);
        more(&mut request);
        let answer = asked.ask(&request, None, Some(self.number), |input| Some((input.u64()?, parse(input)?)));
        let (left, answer) = answer.ok()?;
        *budget = left.min(*budget);
        Some(answer)
    }
}

impl RuleSource for FileRules {
    fn has_rules(&self) -> bool {
        self.has_rules
    }

    fn facts(&self, address: u64, budget: &mut u64) -> Option<Facts> {
        let is_open = self.reader.asked().generation == self.generation;
        if let Some(facts) = self.rows().of(address).filter(|_| is_open) {
            return Some(facts.within());
        }
        let parse = |input: &mut MessageIn<'_>| match input.u8()? {
            0 => Some(None),
            _ => Some(Some((Facts::from_bytes(input.raw()?)?, input.u64()?, input.u64()?))),
        };
        let (facts, first, end) = self.ask(wire::FACTS, (address, budget, 0), |_| {}, parse).flatten()?;
        if (first..end).contains(&address) {
            self.rows().add(first, end, facts);
        }
        Some(facts)
    }

    fn step(&self, address: u64, registers: &Registers, stack: &StackCopy<'_>, budget: &mut u64) -> Stepped {
        let more = |request: &mut MessageOut| {
            request.raw(&registers.to_bytes());
            [stack.base, stack.entry, stack.absent].into_iter().for_each(|number| request.u64(number));
            [stack.cut, stack.in_call].into_iter().for_each(|flag| request.u8(flag.into()));
            request.bytes(&stack.bytes[..stack.bytes.len().min(wire::MOST_STACK)]);
        };
        let parse = |input: &mut MessageIn<'_>| Stepped::from_bytes(std::mem::take(&mut input.0));
        // the stack goes to the child with each question
        let copied = stack.bytes.len() as u64 / 64;
        let stepped = self.ask(wire::STEP, (address, budget, copied), more, parse);
        stepped.unwrap_or(Stepped { caller: Err(UnwindEnd::BadMemory), signal: false })
    }
}
