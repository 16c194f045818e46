//! `analyze mcp`: a server of the Model Context Protocol on standard input and output. A program that lets a language model ask starts it, and
//! gets the answers of reports as JSON, few enough for a model to read ([`gathered`]).
//!
//! One thread reads messages ([`wire`]) and answers what needs no tape ([`protocol`], [`tools`]); calls of tools wait, a bounded number of them,
//! for the first thread, which asks one report after the other ([`calls`]), of the tapes it was given and of no other file ([`shelf`]). Both
//! are in the sandbox of all reports; what starts another program for SQL ([`sql`]) is a process of its own. Standard output has answers
//! and nothing else.

mod calls;
mod gathered;
mod protocol;
mod shelf;
pub(crate) mod sql;
mod tools;
mod wire;

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, IsTerminal as _, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};

use self::calls::Caller;
use self::protocol::{BATCHES, discovered, initialized, is_stateless, stateless};
use self::shelf::Shelf;
use self::sql::SqlStarter;
use self::tools::{Tool, ToolArguments};
use self::wire::{
    BUSY, INVALID_PARAMS, INVALID_REQUEST, InputLine, METHOD_NOT_FOUND, PARSE_ERROR, Received, RpcMessage, RpcRequest,
    failure, success,
};
use crate::asked::config::Config;
use crate::cli::sandbox::{self, RemainingRights};
use crate::cli::several;
use crate::reports::mcp::Options;
use systape_answers::values::say::{Verdict, complain};
use systape_answers::values::spool::STDIN;
use systape_answers::values::tapes::found;

/// Most lines with calls that wait.
const QUEUE: usize = 16;

/// Answers questions about the tapes of `config` until standard input ends; `confined`: in the sandbox.
///
/// # Errors
/// There is no tape, or no thread can be made.
pub(super) fn serve(config: &Config, confined: bool) -> Result<Verdict> {
    let own: Options = config.own()?;
    let tapes = found(std::iter::once(&config.file).chain(&config.more))?;
    if tapes.iter().any(|path| path == Path::new(STDIN)) {
        bail!("'-', standard input, has the client's questions here: save the tape to a file");
    }
    several::check(config, &tapes)?;
    let shelf = Shelf::new(&tapes, own.redact)?;
    let sql = SqlStarter::begin(&shelf.files(), confined)?;
    if io::stdin().is_terminal() {
        complain("waits for the questions of a client, one a line (docs/guides/agents.md); Ctrl-D ends it");
    }
    if confined {
        sandbox::enter(&RemainingRights { read: shelf.reads(), ..RemainingRights::default() });
    }
    let desk = Arc::new(Desk::new(io::stdout()));
    let (send, calls) = mpsc::sync_channel(QUEUE);
    let reader = Arc::clone(&desk);
    // it ends with the input, or with this process
    thread::Builder::new()
        .name("questions".to_owned())
        .spawn(move || reader.read(&mut BufReader::new(io::stdin()), &send))
        .context("no thread can be made")?;
    desk.answer(&calls, &mut Caller { shelf, sql, memory: config.memory });
    Ok(Verdict::default())
}

/// A call of a tool that waits.
struct WaitingCall {
    request: RpcRequest,
    /// Of the version without a handshake.
    stateless: bool,
    tool: usize,
    given: ToolArguments,
    cancelled: Arc<AtomicBool>,
}

/// An answer that is known, or is made later.
enum RpcReply {
    Known(Value),
    Later(Box<WaitingCall>),
}

/// A line with calls that waits.
struct WaitingLine {
    replies: Vec<RpcReply>,
    /// The answers are an array.
    is_batch: bool,
}

/// What both threads have in common.
struct Desk {
    tools: Vec<Tool>,
    /// The version that was agreed upon; None: none was.
    version: Mutex<Option<&'static str>>,
    /// Calls that have no answer yet, by their ids: whether they are cancelled.
    waiting: Mutex<HashMap<String, Arc<AtomicBool>>>,
    /// Where answers go.
    out: Mutex<Box<dyn Write + Send>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    fn new(out: impl Write + Send + 'static) -> Self {
        let out: Box<dyn Write + Send> = Box::new(out);
        Self { tools: tools::tools(), version: Mutex::default(), waiting: Mutex::default(), out: Mutex::new(out) }
    }

    /// Writes an answer on a line of its own.
    fn write(&self, answer: &Value) -> io::Result<()> {
        let mut out = lock(&self.out);
        out.write_all(wire::line_of(answer).as_bytes())?;
        out.flush()
    }

    /// Writes the answers of `line`, of which `make` makes those that are not known; None: there is none.
    fn write_line(&self, line: WaitingLine, mut make: impl FnMut(WaitingCall) -> Option<Value>) -> io::Result<()> {
        let answers = line.replies.into_iter().filter_map(|reply| match reply {
            RpcReply::Known(answer) => Some(answer),
            RpcReply::Later(call) => make(*call),
        });
        let mut answers: Vec<Value> = answers.collect();
        match (line.is_batch, answers.len()) {
            (_, 0) => Ok(()),
            (true, _) => self.write(&Value::Array(answers)),
            (false, _) => self.write(&answers.swap_remove(0)),
        }
    }

    /// Reads messages until there are no more or nobody takes answers.
    fn read(&self, input: &mut impl BufRead, calls: &SyncSender<WaitingLine>) {
        loop {
            let line = match wire::next_line(input, wire::LONGEST_LINE) {
                Ok(InputLine::Text(line)) => line,
                Ok(InputLine::TooLong) => {
                    let text = format!("a line has at most {} bytes", wire::LONGEST_LINE);
                    if self.write(&failure(&Value::Null, PARSE_ERROR, &text)).is_err() {
                        return;
                    }
                    continue;
                }
                Ok(InputLine::End) | Err(_) => return,
            };
            if line.trim_ascii().is_empty() {
                continue;
            }
            if self.line(&line, calls).is_err() {
                return;
            }
        }
    }

    /// Answers `line`, or has its calls wait.
    ///
    /// # Errors
    /// Nobody takes answers.
    fn line(&self, line: &[u8], calls: &SyncSender<WaitingLine>) -> io::Result<()> {
        let (replies, is_batch) = match wire::received(line) {
            Received::One(message) => (self.reply(message).into_iter().collect(), false),
            Received::Batch(_) if *lock(&self.version) != Some(BATCHES) => {
                let text = format!("several messages on a line are of version {BATCHES} alone");
                (vec![RpcReply::Known(failure(&Value::Null, INVALID_REQUEST, &text))], false)
            }
            Received::Batch(all) => (all.into_iter().filter_map(|message| self.reply(message)).collect(), true),
        };
        let line = WaitingLine { replies, is_batch };
        if line.replies.iter().all(|reply| matches!(reply, RpcReply::Known(_))) {
            return self.write_line(line, |_| None);
        }
        match calls.try_send(line) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(line)) => self.write_line(line, |call| {
                self.done(&call);
                let text = format!("{QUEUE} calls wait already: ask again when one of them is answered");
                Some(failure(&call.request.id, BUSY, &text))
            }),
            Err(TrySendError::Disconnected(_)) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Answers calls as they come, until there are no more or nobody takes answers.
    fn answer(&self, calls: &Receiver<WaitingLine>, caller: &mut Caller) {
        for line in calls {
            let written = self.write_line(line, |call| {
                let answer = |caller: &mut Caller| caller.call(&self.tools[call.tool], &call.given, &call.cancelled);
                let result = (!call.cancelled.load(Relaxed)).then(|| answer(caller));
                self.done(&call);
                // to who has cancelled a call nothing is sent
                let result = result.filter(|_| !call.cancelled.load(Relaxed))?;
                let result = if call.stateless { stateless(result, false) } else { result };
                Some(success(&call.request.id, result))
            });
            if written.is_err() {
                return;
            }
        }
    }

    fn done(&self, call: &WaitingCall) {
        lock(&self.waiting).remove(&call.request.id.to_string());
    }

    /// The answer to `message`; None: it has none.
    fn reply(&self, message: RpcMessage) -> Option<RpcReply> {
        match message {
            RpcMessage::Request(request) => Some(self.asked(request)),
            RpcMessage::Notification(method, params) => {
                if method == "notifications/cancelled"
                    && let Some(id) = params.get("requestId")
                    && let Some(cancelled) = lock(&self.waiting).get(&id.to_string())
                {
                    cancelled.store(true, Relaxed);
                }
                None
            }
            RpcMessage::Stray => None,
            RpcMessage::Wrong(answer) => Some(RpcReply::Known(answer)),
        }
    }

    fn asked(&self, request: RpcRequest) -> RpcReply {
        let is_stateless = match is_stateless(&request) {
            Ok(is) => is,
            Err(answer) => return RpcReply::Known(answer),
        };
        let wrong = |code, text: &str| RpcReply::Known(failure(&request.id, code, text));
        let known = |result: Value, kept: bool| {
            let result = if is_stateless { stateless(result, kept) } else { result };
            RpcReply::Known(success(&request.id, result))
        };
        match request.method.as_str() {
            "initialize" => match initialized(&request.params) {
                Some((version, result)) => {
                    *lock(&self.version) = Some(version);
                    RpcReply::Known(success(&request.id, result))
                }
                None => wrong(INVALID_PARAMS, "'protocolVersion' is a text"),
            },
            "server/discover" => RpcReply::Known(success(&request.id, stateless(discovered(), true))),
            "ping" => known(json!({}), false),
            "tools/list" => match request.params.get("cursor") {
                None | Some(Value::Null) => {
                    known(json!({"tools": self.tools.iter().map(Tool::listed).collect::<Vec<_>>()}), true)
                }
                Some(_) => wrong(INVALID_PARAMS, "all tools are on one page: there is no other"),
            },
            "tools/call" => match self.called(&request.params) {
                Ok((tool, given)) => {
                    let cancelled = Arc::<AtomicBool>::default();
                    lock(&self.waiting).insert(request.id.to_string(), Arc::clone(&cancelled));
                    let call = WaitingCall { request, stateless: is_stateless, tool, given, cancelled };
                    RpcReply::Later(Box::new(call))
                }
                Err(text) => wrong(INVALID_PARAMS, &text),
            },
            _ => wrong(METHOD_NOT_FOUND, "there is no such method"),
        }
    }

    /// The tool that is called, and its arguments.
    fn called(&self, params: &Map<String, Value>) -> Result<(usize, ToolArguments), String> {
        let name = params.get("name").and_then(Value::as_str).ok_or("'name' says which tool")?;
        let tool = self.tools.iter().position(|tool| tool.name() == name).ok_or_else(|| {
            let known: Vec<&str> = self.tools.iter().map(Tool::name).collect();
            format!("there is no tool of that name: {}", known.join(", "))
        })?;
        let given = match params.get("arguments") {
            None | Some(Value::Null) => self.tools[tool].read(&Map::new()),
            Some(Value::Object(arguments)) => self.tools[tool].read(arguments),
            Some(_) => Err("'arguments' is an object".to_owned()),
        };
        Ok((tool, given?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps what is written.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            lock(&self.0).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Kept {
        /// The answers since they were taken last.
        fn take(&self) -> Vec<Value> {
            let text = String::from_utf8(std::mem::take(&mut *lock(&self.0))).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        }
    }

    fn call(id: u32) -> String {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "schema"}}).to_string()
    }

    fn caller() -> Caller {
        Caller { shelf: Shelf::new(&["a.tape".into()], None).unwrap(), sql: None, memory: 1 << 20 }
    }

    #[test]
    fn calls_that_are_cancelled_get_no_answer() {
        let kept = Kept::default();
        let desk = Desk::new(kept.clone());
        let (send, calls) = mpsc::sync_channel(QUEUE);
        let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#;
        let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#.to_owned();
        let lines = [call(1), call(2), cancel.to_owned(), cancel.replace(":2}", ":9}"), ping].join("\n");
        desk.read(&mut lines.as_bytes(), &send);
        drop(send);
        assert_eq!(kept.take()[0]["id"], "p", "it is answered while calls wait");
        desk.answer(&calls, &mut caller());
        let ids: Vec<Value> = kept.take().iter().map(|answer| answer["id"].clone()).collect();
        assert_eq!((ids, lock(&desk.waiting).len()), (vec![1.into()], 0));
    }

    #[test]
    fn calls_that_wait_are_bounded() {
        let kept = Kept::default();
        let desk = Desk::new(kept.clone());
        let (send, calls) = mpsc::sync_channel(2);
        let lines: Vec<String> = (0..5).map(call).collect();
        desk.read(&mut lines.join("\n").as_bytes(), &send);
        drop(send);
        let refused = kept.take();
        assert_eq!((refused.len(), &refused[0]["error"]["code"], &refused[0]["id"]), (3, &BUSY.into(), &2.into()));
        desk.answer(&calls, &mut caller());
        assert_eq!((kept.take().len(), lock(&desk.waiting).len()), (2, 0));
    }

    #[test]
    fn several_messages_on_a_line_are_of_one_version() {
        let kept = Kept::default();
        let desk = Desk::new(kept.clone());
        let (send, calls) = mpsc::sync_channel(2);
        let batch = format!(r#"[{},1,{{"jsonrpc":"2.0","method":"notifications/initialized"}}]"#, call(7));
        desk.read(&mut batch.as_bytes(), &send);
        assert_eq!(kept.take()[0]["error"]["code"], INVALID_REQUEST);
        *lock(&desk.version) = Some(BATCHES);
        desk.read(&mut batch.as_bytes(), &send);
        drop(send);
        desk.answer(&calls, &mut caller());
        let answers = kept.take();
        let ids: Vec<&Value> = answers[0].as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
        assert_eq!(ids, [&Value::from(7), &Value::Null]);
    }

    #[test]
    fn who_takes_no_answers_is_sent_no_more() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let desk = Desk::new(Closed);
        let (send, calls) = mpsc::sync_channel(2);
        desk.read(&mut format!("{}\nno JSON\n{}", call(1), call(2)).as_bytes(), &send);
        drop(send);
        desk.answer(&calls, &mut caller());
        assert_eq!(lock(&desk.waiting).len(), 0);
    }
}
