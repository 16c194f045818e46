//! Black-box tests of record and analyze: one program, so that it is built once and its tests run beside each other. Tests run in order
//! of their names: those that bear others beside them come before those that are alone.

mod beside;
mod single;
