//! A bound on the texts that a query makes: a few nested `replace` or `||` make more bytes than there is memory.

use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray as _};
use datafusion::arrow::compute::kernels::concat_elements::concat_elements_utf8;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue, exec_err};
use datafusion::functions::string::{concat, replace};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::check::ELSEWHERE;

/// Most bytes of the texts that one step makes of one batch.
const MOST: u64 = 64 << 20;

/// The engine's functions whose results may be longer than their arguments, bounded.
pub(crate) fn functions() -> [ScalarUDF; 2] {
    [concat(), replace()].map(|inner| ScalarUDF::from(Bounded { inner }))
}

/// Plans `||` as [`Joined`].
#[derive(Debug)]
pub(crate) struct Join;

impl ExprPlanner for Join {
    fn plan_binary_op(&self, raw: RawBinaryExpr, _: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        if raw.op != BinaryOperator::StringConcat {
            return Ok(PlannerResult::Original(raw));
        }
        let signature = Signature::exact(vec![DataType::Utf8, DataType::Utf8], Volatility::Immutable);
        Ok(PlannerResult::Planned(ScalarUDF::from(Joined { signature }).call(vec![raw.left, raw.right])))
    }
}

/// Two texts behind each other; NULL if one is.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Joined {
    signature: Signature,
}

impl ScalarUDFImpl for Joined {
    fn name(&self) -> &'static str {
        "||"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        within(args.args.iter().map(|value| bytes(value, args.number_rows)).sum())?;
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [left, right] = &arrays[..] else { return exec_err!("two texts are needed") };
        let joined = concat_elements_utf8(left.as_string::<i32>(), right.as_string::<i32>())?;
        let scalar = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        Ok(if scalar {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&joined, 0)?)
        } else {
            ColumnarValue::Array(Arc::new(joined))
        })
    }
}

/// A function of the engine whose result is estimated before it is made.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let sizes: Vec<u64> = args.args.iter().map(|value| bytes(value, args.number_rows)).collect();
        within(match (self.inner.name(), &sizes[..], &args.args[..]) {
            ("replace", [text, ..], [_, from, to]) => {
                let (least, most) = (lengths(from).0.max(1), lengths(to).1);
                // nothing stands for the places between all characters
                (text + args.number_rows as u64).saturating_mul(most.div_ceil(least).max(1))
            }
            _ => sizes.iter().sum(),
        })?;
        self.inner.invoke_with_args(args)
    }
}

fn within(bytes: u64) -> Result<()> {
    if bytes <= MOST {
        return Ok(());
    }
    let text = format!("texts of more than {} MiB would be made: {ELSEWHERE}", MOST >> 20);
    Err(DataFusionError::Execution(text))
}

/// Bytes of the texts of `rows` rows.
fn bytes(value: &ColumnarValue, rows: usize) -> u64 {
    match value {
        ColumnarValue::Array(array) => texts(array).map_or(0, |texts| texts.iter().sum()),
        ColumnarValue::Scalar(_) => lengths(value).1.saturating_mul(rows as u64),
    }
}

/// The shortest and the longest of the texts.
fn lengths(value: &ColumnarValue) -> (u64, u64) {
    match value {
        ColumnarValue::Array(array) => {
            let texts = texts(array).unwrap_or_default();
            (texts.iter().copied().min().unwrap_or(0), texts.iter().copied().max().unwrap_or(0))
        }
        ColumnarValue::Scalar(value) => {
            let length = value.try_as_str().flatten().map_or(0, |text| text.len() as u64);
            (length, length)
        }
    }
}

/// Lengths of the texts of an array; None: it has none, and numbers are short.
fn texts(array: &dyn Array) -> Option<Vec<u64>> {
    fn of<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> Vec<u64> {
        texts.flatten().map(|text| text.len() as u64).collect()
    }
    match array.data_type() {
        DataType::Utf8 => Some(of(array.as_string::<i32>().iter())),
        DataType::LargeUtf8 => Some(of(array.as_string::<i64>().iter())),
        DataType::Utf8View => Some(of(array.as_string_view().iter())),
        _ => None,
    }
}
