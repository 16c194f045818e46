//! Arrow's C data interface: rows for programs that know nothing of systape, without a copy of them
//! (<https://arrow.apache.org/docs/format/CDataInterface.html>). Whoever takes a structure calls its `release` once.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use systape_analyzer::frames::Kind;

use crate::check::{CheckedRows, ReceivedColumn};
use crate::texts::{ArrowTexts, CodedTexts};
use crate::wire::AlignedBytes;

/// Name and kind of a column.
pub(crate) type NamedKind = (String, Kind);

/// Rows that were received and checked.
#[derive(Debug)]
pub(crate) struct ReceivedRows {
    pub(crate) checked: CheckedRows,
    pub(crate) data: Arc<AlignedBytes>,
}

/// Rows, batch by batch, for whoever takes a stream.
pub(crate) trait RowStream: Send {
    /// The next rows; None: there are no more.
    fn next(&mut self) -> Result<Option<ReceivedRows>, String>;
}

/// A column may have NULL.
const NULLABLE: i64 = 2;
/// What `get_next` returns when it fails: EIO.
const FAILED: c_int = 5;

#[repr(C)]
pub(crate) struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Self,
    dictionary: *mut Self,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

#[repr(C)]
pub(crate) struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Self,
    dictionary: *mut Self,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

/// A stream of rows, as a consumer takes it out of a capsule.
#[repr(C)]
pub(crate) struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut Self, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Self, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Self) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

// SAFETY: what it points to is owned by it alone, and may be used by any thread.
unsafe impl Send for ArrowArrayStream {}

/// What a schema points to.
struct SchemaParts {
    _format: CString,
    _name: CString,
    children: Vec<*mut ArrowSchema>,
}

/// What an array points to.
struct ArrayParts {
    _data: Arc<AlignedBytes>,
    _made: Vec<AlignedBytes>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
}

/// What a stream points to.
struct StreamParts {
    columns: Vec<NamedKind>,
    texts: ArrowTexts,
    rows: Box<dyn RowStream>,
    error: CString,
}

impl ArrowSchema {
    fn new(format: &CStr, name: &str, flags: i64, children: Vec<Self>) -> Self {
        let children = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
        // no name of a column has a zero in it
        let name = CString::new(name).unwrap_or_default();
        let mut parts = Box::new(SchemaParts { _format: format.to_owned(), _name: name, children });
        Self {
            format: parts._format.as_ptr(),
            name: parts._name.as_ptr(),
            metadata: null(),
            flags,
            n_children: parts.children.len() as i64,
            children: parts.children.as_mut_ptr(),
            dictionary: null_mut(),
            release: Some(release_schema),
            private_data: Box::into_raw(parts).cast(),
        }
    }

    fn of_column((name, kind): &NamedKind, texts: ArrowTexts) -> Self {
        let format = match kind {
            Kind::Text if texts == ArrowTexts::Views => c"vu",
            Kind::Int => c"l",
            Kind::Wide => c"d:20,0",
            Kind::Real => c"g",
            Kind::Flag => c"b",
            Kind::Text => c"u",
            Kind::Instant => c"tsu:UTC",
            Kind::Map => c"+m",
        };
        let text = |name, flags| Self::new(c"u", name, flags, Vec::new());
        let pair = || Self::new(c"+s", "entries", 0, vec![text("key", 0), text("value", NULLABLE)]);
        Self::new(format, name, NULLABLE, if *kind == Kind::Map { vec![pair()] } else { Vec::new() })
    }

    fn of_rows(columns: &[NamedKind], texts: ArrowTexts) -> Self {
        Self::new(c"+s", "", 0, columns.iter().map(|column| Self::of_column(column, texts)).collect())
    }
}

impl ArrowArray {
    /// A column of a kind that is sent as Arrow has it.
    fn new(column: &ReceivedColumn, data: &Arc<AlignedBytes>) -> Self {
        let place = |buffer: &Option<(usize, usize)>| match buffer {
            Some((from, len)) => data.bytes()[*from..*from + *len].as_ptr().cast(),
            None => null(),
        };
        let parts = ArrayParts {
            _data: Arc::clone(data),
            _made: Vec::new(),
            buffers: column.buffers.iter().map(place).collect(),
            children: boxed(column.children.iter().map(|child| Self::new(child, data))),
        };
        Self::of((column.rows, column.nulls), parts)
    }

    /// A column of texts.
    fn of_texts(column: &ReceivedColumn, data: &Arc<AlignedBytes>, form: ArrowTexts) -> Result<Self, String> {
        let made = CodedTexts::new(column, data).made(form)?;
        let place = |bytes: &AlignedBytes| bytes.bytes().as_ptr().cast::<c_void>();
        let valid = made.valid.as_ref().map_or(null(), place);
        let (from, len) = column.buffers[2].unwrap_or_default();
        let bytes = made.bytes.as_ref().map_or(data.bytes()[from..from + len].as_ptr().cast(), place);
        // behind the buffers that views point to stand their lengths
        let length = (form == ArrowTexts::Views).then(|| AlignedBytes::of(&(len as i64).to_le_bytes()));
        let mut buffers = vec![valid, place(&made.places), bytes];
        buffers.extend(length.as_ref().map(place));
        let parts = ArrayParts {
            _data: Arc::clone(data),
            buffers,
            children: Vec::new(),
            _made: [made.valid, Some(made.places), made.bytes, length].into_iter().flatten().collect(),
        };
        Ok(Self::of((column.rows, column.nulls), parts))
    }

    fn of((rows, nulls): (usize, usize), parts: ArrayParts) -> Self {
        let mut parts = Box::new(parts);
        Self {
            length: rows as i64,
            null_count: nulls as i64,
            offset: 0,
            n_buffers: parts.buffers.len() as i64,
            n_children: parts.children.len() as i64,
            buffers: parts.buffers.as_mut_ptr(),
            children: parts.children.as_mut_ptr(),
            dictionary: null_mut(),
            release: Some(release_array),
            private_data: Box::into_raw(parts).cast(),
        }
    }

    /// Rows, whose columns `columns` names.
    fn of_rows(
        ReceivedRows { checked, data }: &ReceivedRows,
        columns: &[NamedKind],
        texts: ArrowTexts,
    ) -> Result<Self, String> {
        let column = |(column, (_, kind)): (&ReceivedColumn, &NamedKind)| match kind {
            Kind::Text => Self::of_texts(column, data, texts),
            _ => Ok(Self::new(column, data)),
        };
        let children = checked.columns.iter().zip(columns).map(column).collect::<Result<Vec<_>, _>>()?;
        let parts =
            ArrayParts { _data: Arc::clone(data), _made: Vec::new(), buffers: vec![null()], children: boxed(children) };
        Ok(Self::of((checked.rows, 0), parts))
    }

    /// What stands for the end of a stream: it has nothing to release.
    fn none() -> Self {
        Self {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: null_mut(),
            children: null_mut(),
            dictionary: null_mut(),
            release: None,
            private_data: null_mut(),
        }
    }
}

fn boxed(arrays: impl IntoIterator<Item = ArrowArray>) -> Vec<*mut ArrowArray> {
    arrays.into_iter().map(|array| Box::into_raw(Box::new(array))).collect()
}

impl ArrowArrayStream {
    /// Makes a stream of `rows` with these columns.
    pub(crate) fn new(columns: Vec<NamedKind>, texts: ArrowTexts, rows: Box<dyn RowStream>) -> Self {
        let parts = Box::new(StreamParts { columns, texts, rows, error: CString::default() });
        Self {
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release_stream),
            private_data: Box::into_raw(parts).cast(),
        }
    }
}

impl Drop for ArrowArrayStream {
    /// Releases what nobody took.
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it was not released: `release` would be none.
            unsafe { release(self) }
        }
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the interface passes a schema that was not released, whose parts `ArrowSchema::new` made.
    unsafe {
        let parts = Box::from_raw((*schema).private_data.cast::<SchemaParts>());
        for child in &parts.children {
            let mut child = Box::from_raw(*child);
            // one that was moved elsewhere has none
            if let Some(release) = child.release {
                release(&raw mut *child);
            }
        }
        (*schema).release = None;
    }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: the interface passes an array that was not released, whose parts `ArrowArray::of` made.
    unsafe {
        let parts = Box::from_raw((*array).private_data.cast::<ArrayParts>());
        for child in &parts.children {
            let mut child = Box::from_raw(*child);
            if let Some(release) = child.release {
                release(&raw mut *child);
            }
        }
        (*array).release = None;
    }
}

unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: the interface passes a stream that was not released, whose parts `ArrowArrayStream::new` made.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<StreamParts>()));
        (*stream).release = None;
    }
}

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: as in `release_stream`; `out` is room for a schema.
    unsafe {
        let parts = &*(*stream).private_data.cast::<StreamParts>();
        out.write(ArrowSchema::of_rows(&parts.columns, parts.texts));
    }
    0
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as in `get_schema`; nobody else uses the stream meanwhile.
    unsafe {
        let parts = &mut *(*stream).private_data.cast::<StreamParts>();
        let array = |rows: Option<ReceivedRows>| match rows {
            Some(rows) => ArrowArray::of_rows(&rows, &parts.columns, parts.texts),
            None => Ok(ArrowArray::none()),
        };
        match parts.rows.next().and_then(array) {
            Ok(array) => out.write(array),
            Err(why) => {
                parts.error = CString::new(why.replace('\0', "\\x00")).unwrap_or_default();
                return FAILED;
            }
        }
    }
    0
}

unsafe extern "C" fn get_last_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: as in `release_stream`.
    let parts = unsafe { &*(*stream).private_data.cast::<StreamParts>() };
    parts.error.as_ptr()
}
