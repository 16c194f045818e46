//! A program under ptrace: its registers, its stack and its mappings as the recorder would have them.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol, SymbolKind};
use systape_unwind::{
    AddressSpace, Found, MappedCode, Module, ModuleLimits, Registers, StackCopy, UnwindEnd, Unwinder,
};

pub const LIMITS: ModuleLimits = ModuleLimits { unwind_bytes: 64 << 20 };
pub const COPY: usize = 256 << 10;

/// Compiles a program of tests/programs; None, said aloud, when the compiler is not there.
pub fn compile(compiler: &str, source: &str, flags: &[&str], to: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let name =
        format!("{}-{}", source.file_stem().unwrap().to_string_lossy(), flags.join("").replace(['/', ',', '='], "_"));
    let output = to.join(format!("{compiler}-{name}"));
    let made = Command::new(compiler).args(flags).arg("-o").arg(&output).arg(&source).arg("-lpthread").output();
    match made {
        Err(e) => {
            eprintln!("SKIPPED: {compiler}: {e}");
            None
        }
        Ok(made) => {
            assert!(made.status.success(), "{compiler} {flags:?}: {}", String::from_utf8_lossy(&made.stderr));
            Some(output)
        }
    }
}

/// A child that stops where it is told to.
pub struct Traced {
    child: Child,
    pub tid: i32,
    memory: File,
    modules: RefCell<HashMap<PathBuf, Rc<Loaded>>>,
}

/// A file that is mapped.
pub struct Loaded {
    pub id: u32,
    pub path: PathBuf,
    pub module: Module,
    functions: Vec<(u64, u64, String)>,
}

/// What is mapped executable.
pub struct Space {
    regions: Vec<(u64, u64, u64, Option<Rc<Loaded>>)>,
    stacks: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Signal(i32),
    Event(i32),
    Exited,
}

impl Traced {
    /// Stopped before its first instruction.
    pub fn start(program: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::null()).env_clear();
        // SAFETY: ptrace and alarm are async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                libc::alarm(120);
                match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let child = command.spawn().expect("start under ptrace");
        let tid = child.id() as i32;
        let memory = File::open(format!("/proc/{tid}/mem")).unwrap();
        let mut traced = Self { child, tid, memory, modules: RefCell::default() };
        assert_eq!(traced.wait(), Stop::Signal(libc::SIGTRAP));
        let options = libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACECLONE;
        traced.request(libc::PTRACE_SETOPTIONS, options as u64);
        // What was mapped before exec is gone.
        traced.memory = File::open(format!("/proc/{tid}/mem")).unwrap();
        traced
    }

    fn request(&self, request: libc::c_uint, data: u64) {
        // SAFETY: the requests used here take no pointers.
        let result = unsafe { libc::ptrace(request, self.tid, 0, data) };
        assert_eq!(result, 0, "ptrace {request}: {}", std::io::Error::last_os_error());
    }

    pub fn wait(&self) -> Stop {
        let mut status = 0;
        // SAFETY: `status` lives through the call.
        let pid = unsafe { libc::waitpid(self.tid, &mut status, libc::__WALL) };
        if pid != self.tid {
            return Stop::Exited;
        }
        if !libc::WIFSTOPPED(status) {
            return Stop::Exited;
        }
        match status >> 16 {
            0 => Stop::Signal(libc::WSTOPSIG(status)),
            event => Stop::Event(event),
        }
    }

    pub fn go(&self, signal: i32) -> Stop {
        self.request(libc::PTRACE_CONT, signal as u64);
        self.wait()
    }

    pub fn step(&self, signal: i32) -> Stop {
        self.request(libc::PTRACE_SINGLESTEP, signal as u64);
        self.wait()
    }

    pub fn event_message(&self) -> u64 {
        let mut message = 0u64;
        // SAFETY: `message` lives through the call.
        let result = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, self.tid, 0, &raw mut message) };
        assert_eq!(result, 0);
        message
    }

    pub fn registers(&self) -> Registers {
        // SAFETY: all zeros is a value of this plain struct.
        let mut r: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        // SAFETY: `r` lives through the call.
        let result = unsafe { libc::ptrace(libc::PTRACE_GETREGS, self.tid, 0, &raw mut r) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        Registers([
            r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14,
            r.r15, r.rip,
        ])
    }

    pub fn read(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let got = self.memory.read_at(&mut bytes, address).unwrap_or(0);
        bytes.truncate(got);
        bytes
    }

    pub fn word(&self, address: u64) -> u64 {
        self.read(address, 8).try_into().map_or(0, u64::from_le_bytes)
    }

    /// The mappings as they are.
    pub fn space(&self) -> Space {
        let mut space = Space { regions: Vec::new(), stacks: Vec::new() };
        for line in fs::read_to_string(format!("/proc/{}/maps", self.tid)).unwrap().lines() {
            let mut words = line.split_ascii_whitespace();
            let (start, end) = words.next().unwrap().split_once('-').unwrap();
            let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
            let (start, end) = (hex(start), hex(end));
            let rights = words.next().unwrap();
            let offset = hex(words.next().unwrap());
            let path = words.nth(2);
            if !rights.contains('x') {
                space.stacks.push((start, end));
                continue;
            }
            let loaded = path.and_then(|path| self.load(Path::new(path), start, end));
            let bias = loaded.as_ref().map_or(0, |l| start.wrapping_sub(l.module.address_of(offset).unwrap()));
            space.regions.push((start, end, bias, loaded));
        }
        space
    }

    fn load(&self, path: &Path, start: u64, end: u64) -> Option<Rc<Loaded>> {
        if let Some(loaded) = self.modules.borrow().get(path) {
            return Some(Rc::clone(loaded));
        }
        let (module, functions) = if path == Path::new("[vdso]") {
            let image = self.read(start, (end - start) as usize);
            (Module::from_bytes(&image, LIMITS).unwrap(), functions(&image))
        } else if path.is_absolute() {
            (Module::open(&File::open(path).unwrap(), LIMITS).unwrap(), functions(&fs::read(path).unwrap()))
        } else {
            return None;
        };
        let id = self.modules.borrow().len() as u32;
        let loaded = Rc::new(Loaded { id, path: path.into(), module, functions });
        self.modules.borrow_mut().insert(path.into(), Rc::clone(&loaded));
        Some(loaded)
    }

    /// Copies the stack from the stack pointer to the end of its mapping, at most `cap` bytes.
    pub fn stack(&self, space: &Space, registers: &Registers, cap: usize) -> (u64, Vec<u8>, bool) {
        let sp = registers.0[7];
        let end = space.stacks.iter().find(|(s, e)| (*s..*e).contains(&sp)).map_or(sp, |(_, e)| *e);
        let length = (end - sp) as usize;
        (sp, self.read(sp, length.min(cap)), length > cap)
    }

    /// Unwinds from where it is stopped.
    pub fn unwind(&self, unwinder: &mut Unwinder, space: &Space) -> (Vec<Found>, UnwindEnd) {
        let registers = self.registers();
        let (base, bytes, cut) = self.stack(space, &registers, COPY);
        let mut frames = Vec::new();
        let copy = StackCopy { base, bytes: &bytes, absent: 0, cut, in_call: false, entry: 0 };
        let end = unwinder.unwind(space, &registers, &copy, 1000, &mut frames);
        (frames, end)
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        _ = self.child.kill();
        // The leader is not reported dead before its traced threads have been waited for.
        while self.tid != self.child.id() as i32 && self.wait() != Stop::Exited {}
        _ = self.child.wait();
    }
}

impl AddressSpace for Space {
    fn code(&self, address: u64) -> MappedCode<'_> {
        let after = self.regions.partition_point(|(start, ..)| *start <= address);
        match self.regions[..after].last() {
            Some((_, end, bias, loaded)) if address < *end => match loaded {
                Some(l) => MappedCode::Module { module: &l.module, id: l.id, bias: *bias },
                None => MappedCode::Jit,
            },
            _ => MappedCode::Nothing,
        }
    }
}

impl Space {
    /// Function and file, as `leaf` or `[libc.so.6]`: functions of other files than the program go by the file.
    pub fn name(&self, program: &Path, address: u64) -> String {
        let Some((_, _, bias, Some(loaded))) = self.regions.iter().find(|(s, e, ..)| (*s..*e).contains(&address))
        else {
            return format!("{address:#x}");
        };
        if loaded.path != program {
            return format!("[{}]", loaded.path.file_name().unwrap().to_string_lossy());
        }
        loaded.function(address - bias)
    }

    /// The file at an address.
    pub fn path(&self, address: u64) -> Option<&PathBuf> {
        let (.., loaded) = self.regions.iter().find(|(s, e, ..)| (*s..*e).contains(&address))?;
        loaded.as_ref().map(|l| &l.path)
    }

    pub fn start_of(&self, path: &str) -> u64 {
        self.regions.iter().find(|(.., l)| l.as_ref().is_some_and(|l| l.path == Path::new(path))).unwrap().0
    }

    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.regions.iter().filter_map(|(.., l)| l.as_ref()).map(|l| l.path.as_path())
    }

    /// For messages: file, function and address.
    pub fn describe(&self, address: u64) -> String {
        match self.regions.iter().find(|(s, e, ..)| (*s..*e).contains(&address)) {
            Some((_, _, bias, Some(l))) => {
                let file = l.path.file_name().unwrap().to_string_lossy().into_owned();
                format!("{file}:{:#x} ({})", address - bias, l.function(address - bias))
            }
            _ => format!("{address:#x}"),
        }
    }
}

impl Loaded {
    fn function(&self, address: u64) -> String {
        let after = self.functions.partition_point(|(start, ..)| *start <= address);
        match self.functions[..after].last() {
            Some((start, size, name)) if address < start + (*size).max(1) || *size == 0 => name.clone(),
            _ => format!("?{address:#x}"),
        }
    }
}

fn functions(bytes: &[u8]) -> Vec<(u64, u64, String)> {
    let Ok(elf) = ElfFile64::<Endianness>::parse(bytes) else { return Vec::new() };
    let mut functions: Vec<_> = elf
        .symbols()
        .chain(elf.dynamic_symbols())
        .filter(|s| s.kind() == SymbolKind::Text && s.is_definition())
        .map(|s| (s.address(), s.size(), s.name().unwrap_or("?").to_owned()))
        .collect();
    functions.sort();
    functions
}
