//! From predicates to what is known of the rows a query can be about. Whatever is not understood bounds nothing.

use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use systape_analyzer::frames::{Bounds, Table};

/// What all of `filters` together say of `table`, and those that said something.
pub(crate) fn of(filters: &[Expr], table: &Table) -> (Bounds, Vec<String>) {
    let mut bounds = Bounds::default();
    let has = |name: &str| table.fields.iter().any(|field| field.name == name);
    let said = filters.iter().filter(|filter| narrow(filter, &mut bounds, &has));
    let said = said.map(ToString::to_string).collect();
    (bounds, said)
}

fn narrow(filter: &Expr, bounds: &mut Bounds, has: &dyn Fn(&str) -> bool) -> bool {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            let (left, right) = (narrow(left, bounds, has), narrow(right, bounds, has));
            left || right
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (&**left, &**right) {
            (Expr::Column(column), Expr::Literal(value, _)) => one(column, *op, value, bounds, has),
            (Expr::Literal(value, _), Expr::Column(column)) => {
                op.swap().is_some_and(|op| one(column, op, value, bounds, has))
            }
            _ => false,
        },
        Expr::Between(between) if !between.negated => match (&*between.expr, &*between.low, &*between.high) {
            (Expr::Column(column), Expr::Literal(low, _), Expr::Literal(high, _)) => {
                let low = one(column, Operator::GtEq, low, bounds, has);
                one(column, Operator::LtEq, high, bounds, has) || low
            }
            _ => false,
        },
        Expr::InList(list) if !list.negated => {
            let Expr::Column(column) = &*list.expr else { return false };
            let literals =
                || list.list.iter().map(|item| if let Expr::Literal(value, _) = item { Some(value) } else { None });
            match column.name.as_str() {
                "pid" => literals()
                    .map(|value| value.and_then(number))
                    .collect::<Option<Vec<i64>>>()
                    .is_some_and(|pids| pid(&pids, bounds)),
                "syscall" => literals()
                    .map(|value| value.and_then(text))
                    .collect::<Option<Vec<String>>>()
                    .is_some_and(|calls| call(calls, bounds)),
                _ => false,
            }
        }
        _ => false,
    }
}

fn number(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::Int64(value) => *value,
        ScalarValue::Int32(value) => value.map(i64::from),
        _ => None,
    }
}

fn text(value: &ScalarValue) -> Option<String> {
    value.try_as_str().flatten().map(str::to_owned)
}

/// The rows are of these processes. A pid that none can have is none of them.
fn pid(pids: &[i64], bounds: &mut Bounds) -> bool {
    bounds.pids.get_or_insert_with(|| pids.iter().filter_map(|pid| u32::try_from(*pid).ok()).collect());
    true
}

/// The rows are of these calls.
fn call(calls: Vec<String>, bounds: &mut Bounds) -> bool {
    bounds.calls.get_or_insert(calls);
    true
}

fn one(column: &Column, op: Operator, value: &ScalarValue, bounds: &mut Bounds, has: &dyn Fn(&str) -> bool) -> bool {
    match (column.name.as_str(), op) {
        ("pid", Operator::Eq) => return number(value).is_some_and(|value| pid(&[value], bounds)),
        ("syscall", Operator::Eq) => return text(value).is_some_and(|name| call(vec![name], bounds)),
        _ => {}
    }
    let (edges, value) = match (column.name.as_str(), value) {
        ("rel_ns", value) if has("rel_ns") => (&mut bounds.rel, number(value)),
        ("ts_ns", value) if has("ts_ns") => (&mut bounds.epoch, number(value)),
        // a µs ends before the next begins
        ("ts", ScalarValue::TimestampMicrosecond(Some(us), _)) => (&mut bounds.epoch, us.checked_mul(1000)),
        _ => return false,
    };
    let Some(value) = value else { return false };
    let slack = if column.name == "ts" { 999 } else { 0 };
    let least = |edge: &mut Option<i64>, value: i64| *edge = Some(edge.map_or(value, |known| known.max(value)));
    let most = |edge: &mut Option<i64>, value: i64| *edge = Some(edge.map_or(value, |known| known.min(value)));
    match op {
        Operator::Gt | Operator::GtEq => least(&mut edges.0, value),
        Operator::Lt | Operator::LtEq => most(&mut edges.1, value.saturating_add(slack)),
        Operator::Eq => {
            least(&mut edges.0, value);
            most(&mut edges.1, value.saturating_add(slack));
        }
        _ => return false,
    }
    true
}
