//! What is taken out of a tape is nowhere in it, by the classes of the schema; everything else is as it was.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use common::{ID, block_spans, checkpoint, end, session, task};
use systape_format::exercise::read_segments;
use systape_format::header::HEADER_LEN;
use systape_format::model::{
    Ancestor, Attached, Class, CommandLine, Container, Frame, Function, Mapping, MappingKind, NetState, Node,
    SignalEvent, SignalKind, StackOf, StackStatus, Symbol, Symbols,
};
use systape_format::redact::{Level, PLACEHOLDER, Redactor};
use systape_format::repair::redact;
use systape_format::table::{ColumnDef, TableDef, Type};
use systape_format::tables::Field;
use systape_format::{
    BlockKind, ByteStatus, Call, Checkpoint, Encoder, Fd, FdTable, ProcessEvent, ProcessKind, SegmentBuilder, Session,
    SyscallRow, Tape, Task, Writer,
};

const COPY: [u8; 16] = *b"the redacted one";

/// Captured memory of argument 0 is a path, of 1 a string, of 2 numbers.
fn class(_: Call, arg: u8, _: &[u8]) -> Option<Class> {
    [Some(Class::Path), Some(Class::String), None].get(usize::from(arg)).copied().flatten()
}

/// Every field of a class, by `Struct.field`, as the schema has them.
fn fields() -> BTreeMap<String, Class> {
    let schema = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas/trace.capnp")).unwrap();
    let (mut fields, mut name) = (BTreeMap::new(), String::new());
    for line in schema.lines() {
        let code = line.split('#').next().unwrap_or_default();
        if let Some(rest) = code.trim().strip_prefix("struct ") {
            name = rest.split_whitespace().next().unwrap_or_default().to_owned();
        }
        for field in code.split_inclusive(';') {
            let Some((before, rest)) = field.split_once("$class(\"") else { continue };
            let class = rest.split('"').next().unwrap_or_default();
            let field = before.split('@').next().unwrap_or_default();
            let field = field.rsplit('{').next().unwrap_or_default().trim();
            if class != "none" {
                let class = Class::named(class).unwrap_or_else(|| panic!("redaction knows no class '{class}': {line}"));
                fields.insert(format!("{name}.{field}"), class);
            }
        }
    }
    assert!(fields.len() >= 24, "only {} fields found: does this test still read the schema?", fields.len());
    fields
}

/// What stands in a field: short enough for an address, and nothing of it is in another one's.
fn mark(field: &str) -> Vec<u8> {
    format!("@{field}").into_bytes()
}

/// A tape that has its mark in every field of a class.
fn marked() -> Vec<u8> {
    let m = mark;
    let text = |field: &str| String::from_utf8(mark(field)).unwrap();
    let session = Session {
        boot_id: text("Session.bootId"),
        hostname: m("Session.hostname"),
        target: format!("command {}", text("Session.target")),
        arguments: vec![m("Argument.value"), b"-C".to_vec(), b"0".to_vec(), b"--".to_vec(), m("Argument.value")],
        users: vec![(0, m("User.name"))],
        cgroups: vec![(7, m("Cgroup.path"))],
        containers: vec![Container {
            id: m("Container.id"),
            name: m("Container.name"),
            image: m("Container.image"),
            pod: m("Container.pod"),
            namespace: m("Container.namespace"),
        }],
        labels: vec![[b"job=".to_vec(), m("Argument.value")].concat()],
        ..session()
    };
    let task = Task { comm: m("Task.comm"), exe: m("Task.exe"), env: m("Task.env"), ..task(0) };
    let checkpoint = Checkpoint {
        tasks: vec![task.clone()],
        fd_tables: vec![FdTable {
            upid: 1,
            complete: true,
            cwd: m("FdTable.cwd"),
            fds: vec![
                Fd { fd: 0, path: m("Fd.path"), cloexec: false },
                Fd { fd: 1, path: b"socket:[17]".to_vec(), cloexec: false },
            ],
            ..FdTable::default()
        }],
        commands: vec![CommandLine { upid: 1, argv: m("CommandLine.argv"), full: 4000 }],
        ..checkpoint(900)
    };
    let mut b = SegmentBuilder::new(900);
    let id = b.intern_task(&task);
    let call = b.intern_call(Call { abi: 1, nr: 7 });
    let names = ["FdName.name", "FdName.name2"].map(|name| b.intern_fd_name(&mark(name)));
    let pipe = b.intern_fd_name(b"pipe:[5]");
    for (i, fd) in [names[0], pipe, names[1], names[0]].into_iter().enumerate() {
        let end = 1000 + i as u64;
        let row = SyscallRow { end, dur: 5, task: id, call, fd, fd2: names[1], ..SyscallRow::default() };
        let row = b.push_syscall(row);
        b.push_captured(row, 0, ByteStatus::Whole, 30, b"@SyscallsBytes.bytes path");
        b.push_captured(row, 1, ByteStatus::Truncated, 3000, b"@SyscallsBytes.bytes string");
        b.push_captured(row, 2, ByteStatus::Whole, 4, b"1234");
        b.push_captured(row, 8, ByteStatus::NotResident, 0, b"");
    }
    let event = ProcessEvent {
        ts: 1000,
        kind: ProcessKind::Exec,
        task: id,
        parent: id,
        flags: 0,
        exit_code: 0,
        group_dead: false,
        path: m("ProcessEvent.path"),
        argv: m("ProcessEvent.argv"),
        argv_full: 70,
        argv_status: ByteStatus::Truncated,
        old_tid: 0,
        comm: m("ProcessEvent.comm"),
    };
    b.push_process(event);
    let ancestors = || vec![Ancestor { pid: 1, start_ns: 5, comm: m("Ancestor.comm") }];
    let signal = b.push_signal(SignalEvent {
        sender: Some(id),
        call_path: m("Signal.callPath"),
        sender_ancestors: ancestors(),
        target_ancestors: ancestors(),
        argv: m("Signal.argv"),
        argv_status: ByteStatus::Whole,
        argv_full: 5,
        ..SignalEvent::new(1001, SignalKind::Generate, 9, id)
    });
    let net = NetState { ts: 1002, sport: 4711, dport: 4712, ..NetState::default() };
    b.push_net(NetState { saddr: m("NetState.saddr"), daddr: m("NetState.daddr"), ..net });
    let mapping = |i: u8| Mapping {
        kind: MappingKind::Elf,
        path: [m("Mapping.path"), vec![b'0' + i]].concat(),
        ..Mapping::default()
    };
    for i in 0..3 {
        let mapping = b.intern_mapping(&mapping(i));
        let frame = b.intern_frame(Frame { mapping, offset: 5, flags: 1 });
        let user = Some(b.intern_node(Node { parent: None, frame }));
        b.push_stack(Attached {
            of: StackOf::Syscall,
            row: i.into(),
            user,
            kernel: None,
            status: StackStatus::Complete,
        });
    }
    let kernel = b.intern_mapping(&Mapping { kind: MappingKind::Kernel, path: b"[kernel]".to_vec(), ..mapping(0) });
    let frame = b.intern_frame(Frame { mapping: kernel, offset: 5, flags: 1 });
    let user = Some(b.intern_node(Node { parent: None, frame }));
    b.push_stack(Attached { of: StackOf::Signal, row: signal, user, kernel: None, status: StackStatus::Complete });
    let function = |name: &str| Function { name: name.into(), file: m("Symbols.fileBytes"), line: 7 };
    let jit = Mapping { kind: MappingKind::Jit, upid: 3, ..Mapping::default() };
    let place = |mapping, offset, name: &str| Symbol { mapping, offset, functions: vec![function(name)] };
    let symbols = Symbols {
        mappings: vec![mapping(0), mapping(1), jit, mapping(2)],
        symbols: vec![place(0, 5, "zero"), place(1, 5, "one"), place(2, 5, "~/@jit/path"), place(2, 6, "@jit string")],
        failures: vec![(3, text("SymbolFailure.text"))],
    };
    for (value, class) in
        [("TableString.value", Some(Class::String)), ("no class", None), ("table path", Some(Class::Path))]
    {
        let column = |name: &'static str, ty, class| ColumnDef::stored(name, ty, class, "");
        let name = format!("test:{}", value.replace(' ', "_"));
        let columns =
            vec![column("ts", Type::Time, None), column("value", Type::Str, class), column("n", Type::Wide, None)];
        let def = TableDef { name: name.into(), doc: "".into(), columns: columns.into() };
        b.push_table_row(&Arc::new(def), 1500, &[Field::Bytes(&m(value)), Field::Number(77)]).unwrap();
    }
    let mut encoder = Encoder::new(3);
    let mut writer = Writer::create(Vec::new(), ID, &session).unwrap();
    writer.checkpoint(encoder.checkpoint(&checkpoint).unwrap()).unwrap();
    writer.segment(encoder.segment(b.finish(2000)).unwrap()).unwrap();
    writer.symbols(encoder.symbols(&symbols).unwrap()).unwrap();
    writer.finish(&end(2000)).unwrap()
}

/// The file as it is, and what its blocks hold.
fn contents(bytes: &[u8]) -> Vec<u8> {
    let mut all = bytes.to_vec();
    for (at, until) in block_spans(bytes) {
        all.extend(zstd::bulk::decompress(&bytes[at + HEADER_LEN..until], 8 << 20).unwrap());
    }
    all
}

fn holds(contents: &[u8], mark: &[u8]) -> bool {
    contents.windows(mark.len()).any(|window| window == mark)
}

fn redacted(bytes: &[u8], level: Level) -> Vec<u8> {
    let tape = Tape::from_bytes(bytes.to_vec()).unwrap();
    redact(&tape, Vec::new(), COPY, &Redactor::new(level, class), &|_| ()).unwrap().0
}

#[test]
fn no_field_of_a_class_is_left() {
    let fields = fields();
    let before = marked();
    let all = contents(&before);
    for field in fields.keys() {
        assert!(holds(&all, &mark(field)), "{field} has a class, and this test puts nothing into it");
    }
    for level in Level::ALL {
        let after = contents(&redacted(&before, level));
        for (field, &class) in &fields {
            // both kinds of captured memory are in one field
            let name = if field == "SyscallsBytes.bytes" { format!("{field} string") } else { field.clone() };
            assert_eq!(!holds(&after, &mark(&name)), level.takes(class), "{field} ({class:?}) at {}", level.name());
        }
        assert!(!holds(&after, b"@no class") && !holds(&after, b"@table path"), "{}", level.name());
        assert!(!holds(&after, b"@SyscallsBytes.bytes path") && !holds(&after, b"@jit/path"));
        assert_eq!(holds(&after, b"@jit string"), level == Level::Paths);
        assert!(holds(&after, PLACEHOLDER) && holds(&after, b"pipe:[5]") && holds(&after, b"socket:[17]"));
        assert!(holds(&after, b"1234") && holds(&after, b"[kernel]"));
    }
}

#[test]
fn the_rest_is_as_it_was() {
    let before = marked();
    for level in Level::ALL {
        let tape = Tape::from_bytes(redacted(&before, level)).unwrap();
        assert_eq!(tape.verify(&|_| ()), []);
        assert!(tape.findings().is_empty() && tape.end().is_some());
        let session = tape.session();
        let classes: Vec<Class> = Class::ALL.into_iter().filter(|class| level.takes(*class)).collect();
        assert_eq!(session.redacted, classes);
        let original = Tape::from_bytes(before.clone()).unwrap();
        let (old, new) = (&read_segments(&original)[0], &read_segments(&tape)[0]);
        let text = |x: &dyn std::fmt::Debug| format!("{x:?}");
        assert_eq!(text(&old.core), text(&new.core));
        assert_eq!(text(&old.time), text(&new.time));
        assert_eq!(text(&old.args), text(&new.args));
        let fds = new.fds.as_ref().unwrap().as_ref().unwrap();
        assert_eq!(
            (fds.names.len(), fds.fd.as_slice(), fds.fd2.as_slice()),
            (2, [2, 3, 2, 2].as_slice(), [2; 4].as_slice())
        );
        let values = new.captured.as_ref().unwrap().as_ref().unwrap();
        assert_eq!(values.len(), 16);
        let kept: Vec<_> = values.iter().take(4).map(|v| (v.status, v.full, v.bytes.len())).collect();
        let gone = (ByteStatus::Redacted, 0, PLACEHOLDER.len());
        let string = if level == Level::Paths { (ByteStatus::Truncated, 3000, 27) } else { gone };
        assert_eq!(kept, [gone, string, (ByteStatus::Whole, 4, 4), (ByteStatus::NotResident, 0, 0)]);
        for table in new.tables.as_ref().unwrap().as_ref().unwrap() {
            assert_eq!((table.ts.as_slice(), table.column("n")), ([1500].as_slice(), Some([77].as_slice())));
        }
        // names of functions are those of their file
        let symbols = tape.symbols(0).unwrap();
        let stacks = new.stacks.as_ref().unwrap();
        for (row, name) in [(0, "zero"), (1, "one")] {
            let leaf = stacks.of(StackOf::Syscall, row).unwrap().user;
            let frame = stacks.frames_from(leaf).next().unwrap();
            let mapping = symbols.mappings.iter().position(|m| *m == stacks.mappings[frame.mapping as usize]).unwrap();
            let symbol = symbols.symbols.iter().find(|symbol| symbol.mapping as usize == mapping).unwrap();
            assert_eq!(symbol.functions[0].name, name.as_bytes());
        }
        if level == Level::All {
            assert_eq!(session.machine_id_hash, 0);
            assert_eq!(session.target, "command <redacted>");
            let words = [b"<redacted>".as_slice(), b"-C", b"<redacted>"];
            assert_eq!(session.arguments, words);
            assert_eq!(session.labels, [b"job=<redacted>"]);
            assert_eq!(session.cgroups, [(7, b"<redacted 7>".to_vec())]);
            let net = &new.nets.as_ref().unwrap().as_ref().unwrap()[0];
            assert_eq!((net.sport, net.dport), (0, 0));
        }
    }
}

#[test]
fn twice_is_once_and_levels_add_up() {
    let before = marked();
    let paths = redacted(&before, Level::Paths);
    for level in Level::ALL {
        let both = redacted(&paths, level);
        let (both, once) = (Tape::from_bytes(both).unwrap(), Tape::from_bytes(redacted(&before, level)).unwrap());
        assert_eq!(both.session(), once.session());
        let text = |tape: &Tape| format!("{:?} {:?} {:?}", read_segments(tape), tape.checkpoint(0), tape.symbols(0));
        // files have their number from the first time
        assert_eq!(text(&both), text(&once), "{}", level.name());
    }
}

#[test]
fn any_tape_can_be_redacted() {
    let plain = common::sample();
    for level in Level::ALL {
        let tape = Tape::from_bytes(redacted(&plain, level)).unwrap();
        assert_eq!(tape.verify(&|_| ()), []);
        assert_eq!(tape.segments().len(), 3);
    }
    let kinds: Vec<BlockKind> = Tape::from_bytes(plain.clone()).unwrap().blocks().iter().map(|b| b.kind).collect();
    let spans = block_spans(&plain);
    // damaged ones too: what is lost stays lost
    let mut rng = common::Rng(5);
    for _ in 0..200 {
        let mut bytes = plain.clone();
        let at = rng.below(bytes.len());
        bytes[at] ^= 1 << rng.below(8);
        let cut = rng.below(200);
        bytes.truncate(bytes.len() - cut);
        let Ok(tape) = Tape::from_bytes(bytes) else { continue };
        let (copy, done) = match redact(&tape, Vec::new(), COPY, &Redactor::new(Level::All, class), &|_| ()) {
            Ok(done) => done,
            Err(error) => panic!("byte {at}: cannot be redacted: {error}"),
        };
        let of = spans.iter().zip(&kinds).find(|((from, to), _)| (*from..*to).contains(&at)).map(|(_, kind)| kind);
        // of definitions of tables any copy will do, and between blocks is nothing
        let harmless = of.is_none_or(|kind| *kind == BlockKind::TableDefs);
        assert!(done.holes.count() > 0 || harmless, "byte {at} of {of:?}");
        let copy = Tape::from_bytes(copy).unwrap();
        assert_eq!(copy.verify(&|_| ()), [], "byte {at}");
    }
}

#[test]
fn what_a_newer_version_wrote_is_not_let_through() {
    let mut bytes = marked();
    // the dict of the first segment; definitions of tables are not copied but made anew
    let dict = Tape::from_bytes(bytes.clone()).unwrap().blocks().iter().position(|b| b.kind == BlockKind::Dict);
    let (at, _) = block_spans(&bytes)[dict.unwrap()];
    bytes[at + 10] = 200;
    common::fix_crc(&mut bytes, at);
    let tape = Tape::from_bytes(bytes).unwrap();
    let error = redact(&tape, Vec::new(), COPY, &Redactor::new(Level::All, class), &|_| ()).unwrap_err();
    assert!(error.to_string().contains("newer version"), "{error}");
}

#[test]
fn what_was_recorded_keeps_its_numbers() {
    let target = |text: &str, level| {
        let mut session = Session { target: text.to_owned(), ..Session::default() };
        Redactor::new(level, class).session(&mut session);
        session.target
    };
    assert_eq!(target("system-wide", Level::All), "system-wide");
    assert_eq!(target("pid 17,18, uid 5", Level::All), "pid 17,18, uid 5");
    assert_eq!(target("pid 17, comm secret, one", Level::All), "pid 17, comm <redacted>");
    assert_eq!(target("pid 17, comm secret", Level::Strings), "pid 17, comm secret");
    assert_eq!(target("comm secret, cgroup /a", Level::Paths), "comm <redacted>");
    assert_eq!(target("cgroup /a, b", Level::Paths), "cgroup <redacted>");
    assert_eq!(target("command sh -c x, pid 7", Level::Paths), "command sh -c x, pid 7");
    assert_eq!(target("system-wide during sh -c x", Level::Strings), "system-wide during <redacted>");
    assert_eq!(target("anything else", Level::Strings), "<redacted>");
}

#[test]
fn what_was_typed_keeps_its_options() {
    let mut session = Session::default();
    let typed = ["/home/me/record", "-C0-3", "--cpu=1", "-o", "secret", "--comm", "x", "--", "sh", "--secret"];
    session.arguments = typed.map(|word| word.as_bytes().to_vec()).to_vec();
    Redactor::new(Level::Strings, class).session(&mut session);
    let kept: Vec<_> = session.arguments.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    assert_eq!(kept, ["<redacted>", "-C<redacted>", "--cpu=<redacted>", "-o", "<redacted>", "--comm", "<redacted>"]);
    // numbers and families are nobody's secrets
    let typed =
        ["record", "--for", "1.5s", "--families=syscall,sched", "-F99", "-m", "64M", "--duration", "x", "--last=10s"];
    let more = ["-p", "17", "sh", "--for", "hunter2", "--families", "sched,hunter2"];
    session.arguments = typed.iter().chain(&more).map(|word| word.as_bytes().to_vec()).collect();
    Redactor::new(Level::Strings, class).session(&mut session);
    let kept: Vec<_> = session.arguments.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let expected = "<redacted> --for 1.5s --families=syscall,sched -F99 -m 64M --duration <redacted> --last=10s -p <redacted> --for <redacted> --families <redacted>";
    assert_eq!(kept.join(" "), expected);
}
