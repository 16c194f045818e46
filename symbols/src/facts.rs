//! Facts of files of users, asked of a child process that parses them: where a function begins, static probes, the build id.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use crate::carrier::Carrier;
use crate::deadline::Deadline;
use crate::executed::Executed;
use crate::function::FunctionStart;
use crate::process::{AnswerFailure, RunningChild, Terms, Within};
use crate::static_probes::StaticProbe;
use crate::wire::{self, MessageIn, MessageOut};

/// Most memory of the child's own, bytes.
const MEMORY: u64 = 256 << 20;
/// Most CPU time for a file.
const CPU: Duration = Duration::from_secs(10);

/// Asks a child process for facts of files.
#[derive(Debug)]
pub struct FileReader {
    command: Vec<OsString>,
    carrier: Carrier,
    child: Option<RunningChild>,
}

impl FileReader {
    /// `command` as for [`Resolver::new`](crate::Resolver::new). The child starts with the first file; `carrier`
    /// opens those.
    pub fn new(command: Vec<OsString>, carrier: Carrier) -> Self {
        Self { command, carrier, child: None }
    }

    /// The function `name` of a 64-bit ELF file, exported or not.
    ///
    /// # Errors
    /// A sentence: what the file is instead, or that it has no such function.
    pub fn function(&mut self, file: &File, name: &str, within: Limits<'_>) -> Result<FunctionStart, String> {
        let mut request = MessageOut::new(wire::FUNCTION);
        request.bytes(short(name)?);
        self.ask(&request, file, within, |input| {
            let (offset, unwinds) = (input.u64()?, input.u8()? != 0);
            let code = input.bytes(wire::MOST_CODE)?.to_vec();
            let returns = (0..input.count(wire::MOST_OFFSETS)?).map(|_| input.u64()).collect::<Option<_>>()?;
            Some(FunctionStart { offset, code, returns, unwinds })
        })
    }

    /// The name by which a 64-bit library is asked for (DT_SONAME); None = it has none.
    ///
    /// # Errors
    /// A sentence: why it cannot be read.
    pub fn soname(&mut self, file: &File, within: Limits<'_>) -> Result<Option<Vec<u8>>, String> {
        self.ask(&MessageOut::new(wire::SONAME), file, within, |input| match input.u8()? {
            0 => Some(None),
            _ => input.bytes(wire::LONGEST_STRING).map(|name| Some(name.to_vec())),
        })
    }

    /// What the file is for exec; None: that is not known, or it cannot be read.
    pub fn executed(&mut self, file: &File, within: Limits<'_>) -> Option<Executed> {
        let answer = self.ask(&MessageOut::new(wire::EXECUTED), file, within, |input| {
            let (kind, name) = (input.u8()?, input.bytes(wire::LONGEST_STRING)?);
            match kind {
                0 => Some(Executed::Script(name.to_vec())),
                1 => Some(Executed::Elf(Some(name.to_vec()))),
                2 => Some(Executed::Elf(None)),
                3 => Some(Executed::OtherElf),
                4 => Some(Executed::Other),
                _ => None,
            }
        });
        answer.ok().filter(|found| match found {
            // a name in /proc and in exec ends with a zero
            Executed::Script(name) | Executed::Elf(Some(name)) => !name.is_empty() && !name.contains(&0),
            _ => true,
        })
    }

    /// Whether it is a 64-bit program that asks for no loader of libraries; false too if it cannot be read.
    pub fn is_static(&mut self, file: &File, within: Limits<'_>) -> bool {
        self.ask(&MessageOut::new(wire::IS_STATIC), file, within, |input| Some(input.u8()? != 0)).unwrap_or(false)
    }

    /// The static probes of a 64-bit ELF file of this architecture, in the order of their notes. Those whose note is damaged, or whose place is
    /// not in the file, are left out.
    ///
    /// # Errors
    /// A sentence: what the file is instead, or that it has none.
    pub fn static_probes(&mut self, file: &File, within: Limits<'_>) -> Result<Vec<StaticProbe>, String> {
        let mut probes = Vec::new();
        loop {
            let mut request = MessageOut::new(wire::PROBES);
            request.u32(probes.len() as u32);
            let total = self.ask(&request, file, within, |input| {
                let total = input.count(crate::static_probes::MOST)?;
                for _ in 0..input.count(total.checked_sub(probes.len())?)? {
                    probes.push(input.static_probe()?);
                }
                Some(total)
            });
            let (total, before) = (total?, probes.len());
            if before >= total {
                return Ok(probes);
            }
        }
    }

    /// Addresses of those of `names` that are symbols of the file, in its own address space.
    ///
    /// # Errors
    /// A sentence: what the file is instead.
    pub fn symbol_addresses(
        &mut self,
        file: &File,
        names: &[&str],
        within: Limits<'_>,
    ) -> Result<HashMap<String, u64>, String> {
        let names: Vec<&str> =
            names.iter().copied().filter(|name| short(name).is_ok()).take(wire::MOST_NAMES).collect();
        let mut request = MessageOut::new(wire::ADDRESSES);
        request.u32(names.len() as u32);
        names.iter().for_each(|name| request.bytes(name.as_bytes()));
        self.ask(&request, file, within, |input| {
            let mut found = HashMap::new();
            for name in &names {
                if input.u8()? != 0 {
                    found.insert((*name).to_owned(), input.u64()?);
                }
            }
            Some(found)
        })
    }

    /// `parse` takes the answer apart, all of it.
    fn ask<T>(
        &mut self,
        request: &MessageOut,
        file: &File,
        limits: Limits<'_>,
        parse: impl FnOnce(&mut MessageIn<'_>) -> Option<T>,
    ) -> Result<T, String> {
        let within = Within { patience: limits.patience, deadline: limits.deadline };
        if limits.deadline.is_over() {
            return Err("the time to look into files is over".into());
        }
        if !self.child.as_mut().is_some_and(RunningChild::is_alive) {
            let (command, carrier) = (&self.command, Some(Arc::new(self.carrier.clone()) as _));
            let terms = Terms { command, memory: MEMORY, cpu: CPU, debug_dirs: &[], gives_way: true, carrier };
            self.child = Some(RunningChild::start(&terms, within).map_err(words)?);
        }
        let Some(child) = &mut self.child else { return Err("it is not read".into()) };
        let answer = child.request(request, Some(file.as_fd()), within, &mut |_| None);
        let parsed = answer.and_then(|answer| {
            let mut input = MessageIn(&answer);
            parse(&mut input).filter(|_| input.0.is_empty()).ok_or_else(|| AnswerFailure::nonsense("a damaged answer"))
        });
        parsed.map_err(|failure| {
            if !matches!(failure, AnswerFailure::Said(_) | AnswerFailure::NotOpened) {
                self.child = None;
            }
            words(failure)
        })
    }
}

/// How long a file may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// Time for one question.
    pub patience: Duration,
    /// Deadline of all questions.
    pub deadline: &'a Deadline,
}

fn short(name: &str) -> Result<&[u8], String> {
    let bytes = name.as_bytes();
    if bytes.len() <= wire::LONGEST_STRING { Ok(bytes) } else { Err("its name is too long".into()) }
}

fn words(failure: AnswerFailure) -> String {
    match failure {
        AnswerFailure::Said(why) => why,
        AnswerFailure::Broken(why) => format!("the process that reads it {why}"),
        AnswerFailure::NotOpened => "its file system takes too long to open it".into(),
        AnswerFailure::TooLong => "it takes too long to read".into(),
        AnswerFailure::Over => "the time to look into files is over".into(),
    }
}
