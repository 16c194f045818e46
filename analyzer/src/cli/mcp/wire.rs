//! Messages of JSON-RPC 2.0, one a line: how they are read within bounds, and written.

use std::io::{self, BufRead, Read as _};

use serde_json::{Map, Value, json};
use systape_answers::render::json::printable;

/// Most bytes of a line.
pub(super) const LONGEST_LINE: usize = 1 << 20;
/// Most messages of a batch.
const LARGEST_BATCH: usize = 64;

/// Code of a line that is no JSON.
pub(super) const PARSE_ERROR: i64 = -32700;
/// Code of JSON that is no request.
pub(super) const INVALID_REQUEST: i64 = -32600;
/// Code of a method that there is not.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
/// Code of parameters that a method or tool does not take.
pub(super) const INVALID_PARAMS: i64 = -32602;
/// Code of a call for which there is no room: more wait than are kept.
pub(super) const BUSY: i64 = -32000;
/// Code of a version that the server does not speak, by MCP.
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

/// One line of input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputLine {
    /// A line, without its end.
    Text(Vec<u8>),
    /// More bytes than a line may have; they are skipped.
    TooLong,
    /// Nothing comes any more.
    End,
}

/// The next line of `input`, of which no more than `most` bytes are kept.
///
/// # Errors
/// `input` cannot be read.
pub(super) fn next_line(input: &mut impl BufRead, most: usize) -> io::Result<InputLine> {
    let mut line = Vec::new();
    let read = input.by_ref().take(most as u64 + 1).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(InputLine::End);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > most {
        skip_line(input)?;
        return Ok(InputLine::TooLong);
    }
    Ok(InputLine::Text(line))
}

/// Skips what is left of a line, keeping nothing of it.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let there = input.fill_buf()?;
        let end = there.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(there.len(), |at| at + 1);
        input.consume(used);
        if end.is_some() || used == 0 {
            return Ok(());
        }
    }
}

/// A question that is answered.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RpcRequest {
    /// A string or a whole number.
    pub id: Value,
    /// Name of what is asked.
    pub method: String,
    /// Parameters of the method.
    pub params: Map<String, Value>,
}

/// A message that came.
#[derive(Debug, PartialEq)]
pub(super) enum RpcMessage {
    /// A message that is answered.
    Request(RpcRequest),
    /// A message that is not answered: its method and parameters.
    Notification(String, Map<String, Value>),
    /// An answer to nothing that was asked.
    Stray,
    /// A message that breaks the rules: the answer that says so.
    Wrong(Value),
}

/// What a line holds.
#[derive(Debug, PartialEq)]
pub(super) enum Received {
    /// A message.
    One(RpcMessage),
    /// Several messages, whose answers are one line.
    Batch(Vec<RpcMessage>),
}

/// The messages of `line`.
pub(super) fn received(line: &[u8]) -> Received {
    let wrong = |code, text: &str| Received::One(RpcMessage::Wrong(failure(&Value::Null, code, text)));
    match serde_json::from_slice(line) {
        Err(error) => wrong(PARSE_ERROR, &format!("no JSON: {error}")),
        Ok(Value::Array(all)) if all.is_empty() => wrong(INVALID_REQUEST, "a batch has messages"),
        Ok(Value::Array(all)) if all.len() > LARGEST_BATCH => {
            wrong(INVALID_REQUEST, &format!("a batch has at most {LARGEST_BATCH} messages"))
        }
        Ok(Value::Array(all)) => Received::Batch(all.into_iter().map(message).collect()),
        Ok(value) => Received::One(message(value)),
    }
}

fn message(value: Value) -> RpcMessage {
    let Value::Object(mut object) = value else {
        return RpcMessage::Wrong(failure(&Value::Null, INVALID_REQUEST, "a message is an object"));
    };
    let id = object.remove("id");
    let known = id.clone().filter(is_id).unwrap_or_default();
    let wrong = |code, text| RpcMessage::Wrong(failure(&known, code, text));
    if object.get("jsonrpc") != Some(&Value::from("2.0")) {
        return wrong(INVALID_REQUEST, "'jsonrpc' is \"2.0\"");
    }
    let method = match object.remove("method") {
        Some(Value::String(method)) => method,
        None if object.contains_key("result") || object.contains_key("error") => return RpcMessage::Stray,
        _ => return wrong(INVALID_REQUEST, "'method' is a string"),
    };
    let params = match object.remove("params") {
        None => Ok(Map::new()),
        Some(Value::Object(params)) => Ok(params),
        Some(_) => Err("'params' is an object"),
    };
    match (id, params) {
        (None, params) => RpcMessage::Notification(method, params.unwrap_or_default()),
        (Some(id), _) if !is_id(&id) => wrong(INVALID_REQUEST, "'id' is a string or a whole number"),
        (Some(_), Err(text)) => wrong(INVALID_PARAMS, text),
        (Some(id), Ok(params)) => RpcMessage::Request(RpcRequest { id, method, params }),
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

/// The answer to `id`.
pub(super) fn success(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// The answer to `id` that there is none.
pub(super) fn failure(id: &Value, code: i64, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})
}

/// The line of an answer.
pub(super) fn line_of(answer: &Value) -> String {
    let mut line = printable(answer);
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code(line: &str) -> (i64, Value) {
        match received(line.as_bytes()) {
            Received::One(RpcMessage::Wrong(answer)) => {
                (answer["error"]["code"].as_i64().unwrap(), answer["id"].clone())
            }
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn what_breaks_the_rules_has_the_code_for_it() {
        for line in ["", "{", "[1", "\u{1}", &"[".repeat(5000)] {
            assert_eq!(code(line).0, PARSE_ERROR, "{line}");
        }
        for line in ["1", "null", "\"x\"", "[]", r#"{"id":1,"method":"ping"}"#, r#"{"jsonrpc":"1.0","id":1}"#] {
            assert_eq!(code(line).0, INVALID_REQUEST, "{line}");
        }
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":7,"method":5}"#), (INVALID_REQUEST, 7.into()));
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":"a","method":"x","params":[]}"#), (INVALID_PARAMS, "a".into()));
        for id in ["null", "1.5", "{}", "[1]", "true", "1e400"] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            assert!([INVALID_REQUEST, PARSE_ERROR].contains(&code(&line).0), "{line}");
        }
        let many = format!("[{}]", vec!["1"; LARGEST_BATCH + 1].join(","));
        assert_eq!(code(&many).0, INVALID_REQUEST);
    }

    #[test]
    fn requests_notifications_and_answers_differ() {
        let one = |line: &str| match received(line.as_bytes()) {
            Received::One(message) => message,
            Received::Batch(all) => panic!("{all:?}"),
        };
        let request = RpcRequest { id: 0.into(), method: "ping".into(), params: Map::new() };
        assert_eq!(one(r#" {"id":0,"jsonrpc":"2.0","method":"ping","more":1} "#), RpcMessage::Request(request));
        let told = RpcMessage::Notification("notifications/initialized".into(), Map::new());
        assert_eq!(one(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), told);
        assert_eq!(one(r#"{"jsonrpc":"2.0","id":4,"result":{}}"#), RpcMessage::Stray);
        assert!(matches!(received(b"[1,2]"), Received::Batch(all) if all.len() == 2));
    }

    #[test]
    fn lines_are_bounded() {
        let long = vec![b'x'; LONGEST_LINE];
        let input = [&long[..], b"\n", &long, b"x\nshort\n", &long, b"xx"].concat();
        let mut input = io::BufReader::with_capacity(4096, &input[..]);
        let mut next = || next_line(&mut input, LONGEST_LINE).unwrap();
        assert_eq!(next(), InputLine::Text(long.clone()));
        assert_eq!(next(), InputLine::TooLong);
        assert_eq!(next(), InputLine::Text(b"short".to_vec()));
        assert_eq!((next(), next()), (InputLine::TooLong, InputLine::End));
        assert_eq!(next_line(&mut &b"no end"[..], LONGEST_LINE).unwrap(), InputLine::Text(b"no end".to_vec()));
    }

    #[test]
    fn an_answer_is_one_line_that_acts_on_no_terminal() {
        let line = line_of(&success(&"a\n\u{9b}".into(), json!({"text": "\u{202e}\r\n"})));
        assert_eq!(line.matches('\n').count(), 1);
        assert!(line.is_ascii() && line.contains("\\u009b"), "{line}");
    }

    proptest! {
        #[test]
        fn no_line_is_too_odd(line: Vec<u8>, text: String) {
            received(&line);
            received(text.as_bytes());
            received(format!("[{text}]").as_bytes());
            received(format!(r#"{{"jsonrpc":"2.0","id":{text},"method":"{text}"}}"#).as_bytes());
        }
    }
}
