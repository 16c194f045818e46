//! What programs asked for that could not be executed: rows of the table `exec:interpreter`.

use rustc_hash::FxHashMap;
use systape_format::families::EXEC_INTERPRETER;
use systape_format::model::Dict;
use systape_format::reader::Tape;
use systape_format::tables::TableRows;

use systape_events::scan::{Coverage, Scan};

/// What a file asked for when it was read after a failed exec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// script, elf, other-elf, other.
    pub kind: String,
    /// The file that asks.
    pub file: Vec<u8>,
    /// What it asks for; None: nothing.
    pub interpreter: Option<Vec<u8>>,
    /// The errno with which that could not be opened; 0: it could be.
    pub error: u16,
    /// Time from the failure until the file was read, ns.
    pub after: u64,
}

/// Interpreters by thread and end of the call.
#[derive(Debug, Default)]
pub struct Interpreters(FxHashMap<(u32, u64), Asked>);

impl Interpreters {
    /// Reads the interpreters of `tape`.
    pub fn read(tape: &Tape) -> (Self, Coverage) {
        let mut all = Self::default();
        let wanted = ("interpreters", &[&EXEC_INTERPRETER][..]);
        let coverage = Scan::tables(tape, wanted, |_, dict, table| all.add(table, dict));
        (all, coverage)
    }

    fn add(&mut self, table: &TableRows, dict: &Dict) {
        let columns = ["task", "ago", "read", "kind", "file", "interpreter", "error"].map(|name| table.column(name));
        let [Some(tasks), Some(ago), Some(read), Some(kind), Some(file), Some(interpreter), Some(error)] = columns
        else {
            return;
        };
        for (row, ts) in table.ts.iter().enumerate() {
            let Some(task) = dict.task_of(tasks[row]) else { continue };
            let asked = Asked {
                kind: String::from_utf8_lossy(table.string(kind[row]).unwrap_or_default()).into_owned(),
                file: table.string(file[row]).unwrap_or_default().to_vec(),
                interpreter: table.string(interpreter[row]).map(<[u8]>::to_vec),
                error: u16::try_from(error[row]).unwrap_or(u16::MAX),
                after: read[row],
            };
            self.0.insert((task.tid, ts.saturating_sub(ago[row])), asked);
        }
    }

    /// What was read after the exec of thread `tid` that failed at `end`; None: nothing.
    pub fn of(&self, tid: u32, end: u64) -> Option<&Asked> {
        self.0.get(&(tid, end))
    }
}
