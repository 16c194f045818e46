//! Columns of a tape's tables as Arrow arrays: one type for each kind.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, Int64Array, MapBuilder, PrimitiveArray, RecordBatch,
    RecordBatchOptions, StringBuilder,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Field, Fields, Float64Type, Int64Type, Schema, SchemaRef, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::arrow::error::Result;
use systape_analyzer::frames::{self, Batch, Kind, NONE, Nullable, Table, Values, utf8};

/// Digits of a [`Kind::Wide`].
pub(crate) const WIDE: u8 = 20;

/// The type of a kind.
pub(crate) fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Int => DataType::Int64,
        Kind::Wide => DataType::Decimal128(WIDE, 0),
        Kind::Real => DataType::Float64,
        Kind::Flag => DataType::Boolean,
        Kind::Text => DataType::Utf8,
        Kind::Instant => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Kind::Map => {
            let entries =
                Fields::from(vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Utf8, true)]);
            DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(entries), false)), false)
        }
    }
}

/// The schema of these fields.
pub(crate) fn schema<'f>(fields: impl IntoIterator<Item = &'f frames::FrameField>) -> SchemaRef {
    let field = |field: &frames::FrameField| Field::new(&field.name, data_type(field.kind), true);
    Arc::new(Schema::new(fields.into_iter().map(field).collect::<Vec<_>>()))
}

/// The schema of `table`.
pub(crate) fn schema_of(table: &Table) -> SchemaRef {
    schema(&table.fields)
}

/// The rows of `batch` with that schema.
///
/// # Errors
/// They do not fit it.
pub(crate) fn record_batch(schema: &SchemaRef, batch: Batch) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.rows));
    let columns =
        batch.columns.into_iter().zip(schema.fields()).map(|(values, field)| array(values, field.data_type()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns.collect::<Result<_>>()?, &options)
}

fn numbers<T: ArrowPrimitiveType>(values: Nullable<T::Native>) -> PrimitiveArray<T>
where
    T::Native: Default,
{
    let (values, nulls) = values.into_parts();
    let valid = nulls.map(|nulls| nulls.into_iter().map(|null| !null).collect::<Vec<bool>>());
    PrimitiveArray::new(values.into(), valid.map(NullBuffer::from))
}

fn array(values: Values, ty: &DataType) -> Result<ArrayRef> {
    Ok(match values {
        Values::Int(values) => match ty {
            DataType::Timestamp(..) => Arc::new(numbers::<TimestampMicrosecondType>(values).with_timezone("UTC")),
            _ => Arc::new(numbers::<Int64Type>(values)),
        },
        Values::Wide(values) => Arc::new(numbers::<Decimal128Type>(values).with_precision_and_scale(WIDE, 0)?),
        Values::Real(values) => Arc::new(numbers::<Float64Type>(values)),
        Values::Flag(values) => Arc::new(values.iter().collect::<BooleanArray>()),
        Values::Text(codes, names) => {
            let names: Vec<String> = names.iter().map(|name| utf8(name)).collect();
            let mut texts = StringBuilder::with_capacity(codes.len(), codes.len() * 8);
            for code in codes {
                match names.get(code as usize).filter(|_| code != NONE) {
                    Some(name) => texts.append_value(name),
                    None => texts.append_null(),
                }
            }
            Arc::new(texts.finish())
        }
        Values::Map(rows) => {
            let DataType::Map(entries, _) = ty else { return Ok(Arc::new(Int64Array::from(vec![None; rows.len()]))) };
            let DataType::Struct(parts) = entries.data_type() else {
                return Ok(Arc::new(Int64Array::from(vec![None; rows.len()])));
            };
            let names = datafusion::arrow::array::MapFieldNames {
                entry: entries.name().clone(),
                key: parts[0].name().clone(),
                value: parts[1].name().clone(),
            };
            let mut maps = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
            for row in rows {
                for (name, value) in row.iter().flatten() {
                    maps.keys().append_value(name);
                    maps.values().append_option(value.as_deref());
                }
                maps.append(row.is_some())?;
            }
            Arc::new(maps.finish())
        }
    })
}
