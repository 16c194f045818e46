//! `systape._native`: what the Python package `systape` asks of tapes.
//!
//! A question is a line of JSON ([`question`]). It is answered ([`answer`]) in a child process without rights ([`child`]), or, if that is
//! asked for, by a thread of this one. The answer is a sequence of frames ([`wire`]): heads of tables as JSON, and their rows as buffers of
//! Arrow, which are checked before anybody follows an offset in them ([`check`]) and handed on by Arrow's C interface ([`interface`]).

mod answer;
mod asker;
mod check;
mod child;
mod interface;
mod question;
mod texts;
mod wire;

use pyo3::prelude::*;

/// Answers questions about systape tapes.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("SystapeError", module.py().get_type::<asker::SystapeError>())?;
    module.add_class::<asker::Answer>()?;
    module.add_class::<asker::Rows>()?;
    module.add_function(wrap_pyfunction!(child::child, module)?)
}
