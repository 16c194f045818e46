//! The terminal: raw while this runs, and as it was before when that ends, in whatever way. Output of screens as control sequences that
//! every terminal of today has (ECMA-48, the alternate screen of xterm).

use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use anyhow::{Context as _, Result};
use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell as ScreenCell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};

/// The signal that came; 0: none.
static CAME: AtomicI32 = AtomicI32::new(0);
/// The terminal's settings before; None: it has them.
static BEFORE: Mutex<Option<libc::termios>> = Mutex::new(None);

/// Enters the alternate screen, which is empty, without a cursor and without breaking lines.
const BEGIN: &str = "\x1b[?1049h\x1b[2J\x1b[?25l\x1b[?7l";
/// Takes all of that back.
const END: &str = "\x1b[m\x1b[?7h\x1b[?25h\x1b[?1049l";

extern "C" fn came(signal: libc::c_int) {
    CAME.store(signal, Ordering::Relaxed);
}

/// The terminal while screens are shown.
pub(super) struct RawTerminal(());

impl RawTerminal {
    /// Makes it raw.
    ///
    /// # Errors
    /// Standard input is none.
    pub(super) fn begin() -> Result<Self> {
        let fd = io::stdin().as_raw_fd();
        // SAFETY: zeros are a value of it; the call fills it or fails.
        let mut settings: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: see above.
        if unsafe { libc::tcgetattr(fd, &raw mut settings) } != 0 {
            return Err(io::Error::last_os_error()).context("the terminal has no settings");
        }
        *BEFORE.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(settings);
        // SAFETY: changes the value alone.
        unsafe { libc::cfmakeraw(&raw mut settings) };
        // SAFETY: the settings live.
        if unsafe { libc::tcsetattr(fd, libc::TCSADRAIN, &raw const settings) } != 0 {
            return Err(io::Error::last_os_error()).context("the terminal cannot be made raw");
        }
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            // SAFETY: the handler does nothing but store a number.
            unsafe { libc::signal(signal, came as *const () as libc::sighandler_t) };
        }
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            // that of a question is an answer that does not come
            if thread::current().name() == Some("main") {
                restore();
                before(info);
            }
        }));
        let mut out = io::stdout();
        out.write_all(BEGIN.as_bytes())?;
        out.flush()?;
        Ok(Self(()))
    }

    /// The signal that ends this; None: none came.
    pub(super) fn signal(&self) -> Option<i32> {
        Some(CAME.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
    }

    /// Waits for bytes for at most `ms`, and appends them; false: there will be none any more.
    pub(super) fn read(&self, ms: i32, bytes: &mut Vec<u8>) -> bool {
        let fd = io::stdin().as_raw_fd();
        let mut polled = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one structure, which lives. A signal ends it early.
        if unsafe { libc::poll(&raw mut polled, 1, ms) } <= 0 {
            return true;
        }
        let mut piece = [0_u8; 256];
        // SAFETY: as many bytes as there is room for.
        let read = unsafe { libc::read(fd, piece.as_mut_ptr().cast(), piece.len()) };
        match usize::try_from(read) {
            Ok(0) => false,
            Ok(read) => {
                bytes.extend_from_slice(&piece[..read]);
                true
            }
            Err(_) => io::Error::last_os_error().kind() == io::ErrorKind::Interrupted,
        }
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back as it was, once.
fn restore() {
    let Ok(mut before) = BEFORE.lock() else { return };
    if let Some(settings) = before.take() {
        let mut out = io::stdout();
        // if nobody takes it, nothing can be done
        let _ = out.write_all(END.as_bytes()).and_then(|()| out.flush());
        // SAFETY: the settings live.
        unsafe { libc::tcsetattr(io::stdin().as_raw_fd(), libc::TCSADRAIN, &raw const settings) };
    }
}

/// Ends this process as `signal` does.
pub(super) fn end_by(signal: i32) {
    // SAFETY: the terminal is restored, and nothing comes after it.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Columns and lines of the terminal.
pub(super) fn size() -> Option<(usize, usize)> {
    // SAFETY: zeros are a value of it; the call fills it or fails.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: see above.
    let failed = unsafe { libc::ioctl(io::stdout().as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) } != 0;
    (!failed && size.ws_col > 0 && size.ws_row > 0).then(|| (size.ws_col.into(), size.ws_row.into()))
}

/// Whether keys and screens have one.
pub(super) fn is_there() -> bool {
    io::stdin().is_terminal() && systape_cli::takes_escapes(&io::stdout())
}

/// Screens as control sequences to standard output, a write a screen.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    bytes: String,
    /// How letters look from here on, as parameters.
    look: String,
}

/// The parameter of a colour; None: that of the terminal.
fn parameter(color: Color) -> Option<u8> {
    Some(match color {
        Color::Red => 31,
        Color::Green => 32,
        Color::Yellow => 33,
        Color::Blue => 34,
        Color::Cyan => 36,
        Color::DarkGray => 90,
        _ => return None,
    })
}

impl Sequences {
    fn cell(&mut self, cell: &ScreenCell) {
        let mut parameters = String::new();
        for (modifier, number) in [(Modifier::BOLD, "1"), (Modifier::REVERSED, "7")] {
            if cell.modifier.contains(modifier) {
                parameters = format!("{parameters};{number}");
            }
        }
        if let Some(color) = parameter(cell.fg) {
            parameters = format!("{parameters};{color}");
        }
        if parameters != self.look {
            self.bytes.push_str(&format!("\x1b[0{parameters}m"));
            self.look = parameters;
        }
        self.bytes.push_str(cell.symbol());
    }
}

impl Backend for Sequences {
    type Error = io::Error;

    fn draw<'a, I: Iterator<Item = (u16, u16, &'a ScreenCell)>>(&mut self, content: I) -> io::Result<()> {
        let mut next = None;
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                self.bytes.push_str(&format!("\x1b[{};{}H", y + 1, x + 1));
            }
            self.cell(cell);
            next = Some((x + 1, y));
        }
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, _position: P) -> io::Result<()> {
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.bytes.push_str("\x1b[m\x1b[2J");
        self.look.clear();
        Ok(())
    }

    fn clear_region(&mut self, _clear_type: ClearType) -> io::Result<()> {
        self.clear()
    }

    fn size(&self) -> io::Result<Size> {
        let (width, height) = size().unwrap_or((80, 24));
        let number = |cells: usize| u16::try_from(cells.min(1000)).unwrap_or(80);
        Ok(Size::new(number(width), number(height)))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::new(0, 0) })
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut out = io::stdout();
        out.write_all(self.bytes.as_bytes())?;
        self.bytes.clear();
        out.flush()
    }
}
