//! Arithmetic that is right or fails: the engine's own wraps at 64 bits, and divides whole numbers to whole numbers.

use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray as _};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Float64Type, Int64Type};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue, exec_err};
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::median::median_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, ExprSchemable as _, GroupsAccumulator,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast as cast_expr,
};
use datafusion::physical_expr::expressions::Literal;
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// An operation on two whole numbers, which fails where its result has more than 64 bits, or on two fractions: there NaN is greater
/// than every number. That of x86 has a sign, and the engine orders it below all.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    op: ExactOp,
    of: DataType,
    signature: Signature,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ExactOp {
    Add,
    Sub,
    Mul,
    Rem,
    Div,
}

impl ExactOp {
    /// Of [`DataType::Int64`] or [`DataType::Float64`].
    fn udf(self, of: DataType) -> ScalarUDF {
        let signature = Signature::exact(vec![of.clone(), of.clone()], Volatility::Immutable);
        ScalarUDF::from(Checked { op: self, of, signature })
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        match self.op {
            ExactOp::Add => "add",
            ExactOp::Sub => "subtract",
            ExactOp::Mul => "multiply",
            ExactOp::Rem => "modulo",
            ExactOp::Div => "divide",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.of.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [left, right] = &arrays[..] else { return exec_err!("two numbers are needed") };
        let of = match self.op {
            ExactOp::Add => numeric::add,
            ExactOp::Sub => numeric::sub,
            ExactOp::Mul => numeric::mul,
            ExactOp::Rem => numeric::rem,
            ExactOp::Div => numeric::div,
        };
        Ok(ColumnarValue::Array(positive_nan(of(left, right)?)))
    }
}

/// The number with the other sign: of a whole number it fails where there is none, and that of 0.0 is -0.0.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Negated(Signature);

/// Name of the function, which no query may use.
pub(crate) const NEGATED: &str = "negated";

/// What [`NEGATED`] stands for.
pub(crate) fn negated() -> ScalarUDF {
    ScalarUDF::from(Negated(Signature::user_defined(Volatility::Immutable)))
}

impl ScalarUDFImpl for Negated {
    fn name(&self) -> &str {
        NEGATED
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [of] = types else { return exec_err!("a number is needed") };
        Ok(vec![match of {
            ty if ty.is_integer() || ty.is_null() => DataType::Int64,
            ty if ty.is_floating() => DataType::Float64,
            DataType::Decimal128(..) => of.clone(),
            other => return exec_err!("- of {other} is not answered here: it is for numbers"),
        }])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        // a sum of decimals has fewer digits than its type says
        let values = cast(&arrays[0], args.return_type())?;
        Ok(ColumnarValue::Array(positive_nan(numeric::neg(&values)?)))
    }
}

/// The same with a NaN that is greater than every number.
fn positive_nan(values: ArrayRef) -> ArrayRef {
    match values.as_primitive_opt::<Float64Type>() {
        Some(values) => Arc::new(values.unary::<_, Float64Type>(|value| if value.is_nan() { f64::NAN } else { value })),
        None => values,
    }
}

/// Plans arithmetic by [`Checked`], division as that of fractions.
#[derive(Debug)]
pub(crate) struct Arithmetic;

impl ExprPlanner for Arithmetic {
    fn plan_binary_op(&self, raw: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let op = match raw.op {
            BinaryOperator::Plus => ExactOp::Add,
            BinaryOperator::Minus => ExactOp::Sub,
            BinaryOperator::Multiply => ExactOp::Mul,
            BinaryOperator::Modulo => ExactOp::Rem,
            BinaryOperator::Divide => ExactOp::Div,
            _ => return Ok(PlannerResult::Original(raw)),
        };
        let types = (raw.left.get_type(schema)?, raw.right.get_type(schema)?);
        let whole = |ty: &DataType| ty.is_integer() || ty.is_null();
        let exact = |ty: &DataType| whole(ty) || matches!(ty, DataType::Decimal128(..));
        let number = |ty: &DataType| exact(ty) || ty.is_floating();
        if !number(&types.0) || !number(&types.1) {
            return exec_err!("{} of {} and {} is not answered here: it is for numbers", raw.op, types.0, types.1);
        }
        let both =
            |raw: RawBinaryExpr, ty: &DataType| (cast_expr(raw.left, ty.clone()), cast_expr(raw.right, ty.clone()));
        match op {
            op if op != ExactOp::Div && whole(&types.0) && whole(&types.1) => {
                let (left, right) = both(raw, &DataType::Int64);
                Ok(PlannerResult::Planned(op.udf(DataType::Int64).call(vec![left, right])))
            }
            ExactOp::Rem => exec_err!("% is answered here for whole numbers alone"),
            // decimals are checked by the engine
            op if op != ExactOp::Div && exact(&types.0) && exact(&types.1) => {
                let wide = DataType::Decimal128(38, 0);
                let scaled = |ty: &DataType| matches!(ty, DataType::Decimal128(_, scale) if *scale != 0);
                if scaled(&types.0) || scaled(&types.1) {
                    return exec_err!("arithmetic on {} and {} is not answered here", types.0, types.1);
                }
                let (left, right) = both(raw, &wide);
                Ok(PlannerResult::Planned(match op {
                    ExactOp::Add => left + right,
                    ExactOp::Sub => left - right,
                    // the engine would round a product of so many digits
                    _ => {
                        return exec_err!(
                            "a product of numbers with more than 64 bits is not answered here: cast them to double"
                        );
                    }
                }))
            }
            op => {
                let (left, right) = both(raw, &DataType::Float64);
                Ok(PlannerResult::Planned(op.udf(DataType::Float64).call(vec![left, right])))
            }
        }
    }
}

/// An aggregate of the engine that gets whole numbers as what it cannot err with.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Widened {
    name: &'static str,
    inner: Arc<AggregateUDF>,
    /// Whole numbers become this.
    to: DataType,
    signature: Signature,
}

impl Widened {
    fn udaf(name: &'static str, inner: Arc<AggregateUDF>, to: DataType) -> AggregateUDF {
        AggregateUDF::from(Self { name, inner, to, signature: Signature::user_defined(Volatility::Immutable) })
    }
}

impl AggregateUDFImpl for Widened {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [first] = types else { return exec_err!("{} takes one argument", self.name) };
        Ok(vec![match first {
            ty if ty.is_integer() || ty.is_null() => self.to.clone(),
            // asked again about what it said: another type would be another result's
            ty if *ty == self.to => ty.clone(),
            DataType::Decimal128(_, scale) => match self.to {
                DataType::Decimal128(..) => DataType::Decimal128(38, *scale),
                _ => DataType::Float64,
            },
            ty if ty.is_floating() => DataType::Float64,
            other => return exec_err!("{} of {other} is not answered here: it is for numbers", self.name),
        }])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        self.inner.create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.inner.create_sliding_accumulator(args)
    }
}

/// The mean: of whole numbers their exact sum by their number.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Mean {
    inner: Arc<AggregateUDF>,
    signature: Signature,
}

fn is_exact(field: &FieldRef) -> bool {
    matches!(field.data_type(), DataType::Decimal128(..))
}

impl AggregateUDFImpl for Mean {
    fn name(&self) -> &str {
        "avg"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [ty] = types else { return exec_err!("avg takes one argument") };
        match ty {
            ty if ty.is_integer() || ty.is_null() => Ok(vec![DataType::Decimal128(38, 0)]),
            DataType::Decimal128(_, 0) => Ok(vec![DataType::Decimal128(38, 0)]),
            ty if ty.is_floating() || matches!(ty, DataType::Decimal128(..)) => Ok(vec![DataType::Float64]),
            other => exec_err!("avg of {other} is not answered here: it is for numbers"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match args.expr_fields.first().is_some_and(is_exact) {
            true if args.is_distinct => {
                exec_err!("avg(DISTINCT ...) of whole numbers is not answered here: cast them to double")
            }
            true => Ok(Box::new(Sum::default())),
            false => self.inner.accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if !args.input_fields.first().is_some_and(is_exact) {
            return self.inner.state_fields(args);
        }
        let field = |name: &str, ty| Arc::new(Field::new(format!("{}[{name}]", args.name), ty, true));
        Ok(vec![field("sum", DataType::Decimal128(38, 0)), field("count", DataType::Int64)])
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.expr_fields.first().is_some_and(is_exact) && self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        self.inner.create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if args.expr_fields.first().is_some_and(is_exact) {
            return Ok(Box::new(Sum::default()));
        }
        self.inner.create_sliding_accumulator(args)
    }
}

/// A sum of whole numbers, and how many they are.
#[derive(Debug, Default)]
struct Sum {
    sum: i128,
    count: i64,
}

impl Sum {
    fn add(&mut self, values: &ArrayRef, sign: i128) -> Result<()> {
        let values = cast(values, &DataType::Decimal128(38, 0))?;
        for value in values.as_primitive::<Decimal128Type>().iter().flatten() {
            let sum = self.sum.checked_add(sign * value);
            self.sum = sum.ok_or_else(|| DataFusionError::Execution("a sum has more than 38 digits".to_owned()))?;
            self.count += sign as i64;
        }
        Ok(())
    }
}

impl Accumulator for Sum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0], 1)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0], -1)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64((self.count > 0).then(|| self.sum as f64 / self.count as f64)))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Decimal128(Some(self.sum), 38, 0), ScalarValue::Int64(Some(self.count))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let count: i64 = states[1].as_primitive::<Int64Type>().iter().flatten().sum();
        let before = self.count;
        self.add(&states[0], 1)?;
        self.count = before + count;
        Ok(())
    }
}

/// The value below which a part of the values is, between two of them by proportion. Keeps every value.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactQuantile {
    signature: Signature,
}

impl AggregateUDFImpl for ExactQuantile {
    fn name(&self) -> &str {
        "quantile_cont"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [value, _] if value.is_numeric() || value.is_null() => Ok(vec![DataType::Float64, DataType::Float64]),
            _ => exec_err!("quantile_cont takes a number and a part from 0 to 1"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let constant =
            args.exprs.get(1).and_then(|part| part.downcast_ref::<Literal>().map(|part| part.value().clone()));
        match constant.map(|part| part.cast_to(&DataType::Float64)) {
            Some(Ok(ScalarValue::Float64(Some(part)))) if (0.0..=1.0).contains(&part) => {
                Ok(Box::new(Kept { part, values: Vec::new() }))
            }
            _ => exec_err!("the part of quantile_cont is a constant from 0 to 1"),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let item = Arc::new(Field::new_list_field(DataType::Float64, true));
        Ok(vec![Arc::new(Field::new(format!("{}[values]", args.name), DataType::List(item), true))])
    }
}

/// The values of a [`ExactQuantile`].
#[derive(Debug)]
struct Kept {
    part: f64,
    values: Vec<f64>,
}

impl Accumulator for Kept {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.extend(values[0].as_primitive::<Float64Type>().iter().flatten());
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.values.sort_unstable_by(f64::total_cmp);
        let place = self.part * self.values.len().saturating_sub(1) as f64;
        let (below, above) = (self.values.get(place.floor() as usize), self.values.get(place.ceil() as usize));
        let between = |below: f64, above: f64| below + (above - below) * (place - place.floor());
        Ok(ScalarValue::Float64(below.zip(above).map(|(below, above)| between(*below, *above))))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<f64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: Vec<ScalarValue> = self.values.iter().map(|value| ScalarValue::Float64(Some(*value))).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Float64))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states[0].as_list::<i32>().iter().flatten() {
            self.update_batch(&[list])?;
        }
        Ok(())
    }
}

/// The aggregates that take the place of the engine's.
pub(crate) fn aggregates() -> Vec<AggregateUDF> {
    vec![
        Widened::udaf("sum", sum_udaf(), DataType::Decimal128(19, 0)),
        Widened::udaf("median", median_udaf(), DataType::Float64),
        AggregateUDF::from(ExactQuantile { signature: Signature::user_defined(Volatility::Immutable) }),
        AggregateUDF::from(Mean { inner: avg_udaf(), signature: Signature::user_defined(Volatility::Immutable) }),
    ]
}
