//! A redacted copy of a tape: blocks with a field of a class are rewritten, the others are copied as stored.

use super::{Redactor, renumber};
use crate::encode::Encoder;
use crate::error::{Error, Result};
use crate::header::{BlockKind, MINOR};
use crate::kinds::Rows;
use crate::message::{self, CapturedValues};
use crate::model::{Core, Dict};
use crate::order::column_order;
use crate::payload::Block;
use crate::reader::Segment;

/// Refuses blocks of a later version.
pub(crate) fn known(block: &Block) -> Result<()> {
    let minor = block.header.minor;
    if minor <= MINOR {
        return Ok(());
    }
    let why = format!(
        "it was written by a newer version (1.{minor}, this one knows 1.{MINOR}) and may hold what this one does not know of"
    );
    Err(Error::invalid(block.header.kind.name(), why))
}

/// `block` of a segment without what is taken out; None = its contents are not known.
pub(crate) fn block(
    redactor: &Redactor,
    encoder: &mut Encoder,
    segment: &Segment<'_>,
    block: Block,
    dict: &Dict,
    core: &Core,
) -> Result<Option<Block>> {
    known(&block)?;
    let kind = block.header.kind;
    let message = match kind {
        kind if kind.is_numbers() && kind.rows() != Some(Rows::Tape) => return Ok(Some(block)),
        BlockKind::Dict => {
            let mut dict = dict.clone();
            dict.tasks.iter_mut().for_each(|task| redactor.task(task));
            message::write_dict(&dict.tasks, &dict.calls, (dict.window_start, dict.window_end))
        }
        BlockKind::SyscallsBytes => message::write_bytes(&values(redactor, segment, dict, core)?),
        BlockKind::SyscallsFds => {
            let mut fds = segment.fds(core)?;
            fds.fd2.resize(fds.fd.len(), crate::model::FD_NONE);
            let (names, numbers) = redactor.fd_names(fds.names.iter().map(Vec::as_slice));
            renumber(fds.fd.iter_mut().chain(&mut fds.fd2), &numbers);
            let rows: Vec<u32> = (0..core.task.len() as u32).collect();
            let order = column_order(&core.task, &core.call);
            message::write_fds(&order, &rows, [&fds.fd, &fds.fd2], &names)
        }
        BlockKind::Processes => {
            let mut events = segment.processes(dict)?;
            events.iter_mut().for_each(|event| redactor.process(event));
            message::write_processes(&events)
        }
        BlockKind::Signals => {
            let mut signals = segment.signals(dict)?;
            signals.iter_mut().for_each(|signal| redactor.signal(signal));
            message::write_signals(&signals)
        }
        BlockKind::Net => {
            let mut nets = segment.nets(dict)?;
            nets.iter_mut().for_each(|net| redactor.net(net));
            message::write_nets(&nets)
        }
        BlockKind::Stacks => {
            let mut stacks = segment.stacks()?;
            stacks.mappings.iter_mut().for_each(|mapping| redactor.mapping(mapping));
            return encoder.read_stacks(&stacks).map(Some);
        }
        BlockKind::Tables => {
            let mut tables = segment.tables(dict)?;
            tables.iter_mut().for_each(|table| redactor.table(table));
            message::write_tables(&tables)
        }
        // not of a segment, or of a later version
        _ => return Ok(None),
    };
    encoder.again(&block, &message).map(Some)
}

fn values(redactor: &Redactor, segment: &Segment<'_>, dict: &Dict, core: &Core) -> Result<CapturedValues> {
    let mut values = CapturedValues::default();
    for mut value in segment.captured(core)? {
        let call = core.call.get(value.row as usize).and_then(|&call| dict.calls.get(call as usize));
        let call = call.copied().unwrap_or_default();
        redactor.captured(call, value.arg, &mut value.bytes, &mut value.status, &mut value.full);
        values.row.push(value.row);
        values.arg.push(value.arg);
        values.status.push(value.status as u8);
        values.len.push(value.bytes.len() as u32);
        values.full.push(value.full);
        values.bytes.append(&mut value.bytes);
    }
    Ok(values)
}
