//! Names of a query's columns that it does not name itself: its own words, as DuckDB writes them. The engine would name them by
//! its plan, and refuse two of one name.

use std::collections::BTreeSet;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Ident, Select, SelectItem, UnaryOperator,
};

/// Names the unnamed columns of `select`. One whose name an earlier column has gets a number: `pid`, `pid_1`.
pub(crate) fn name(select: &mut Select) {
    let mut names = BTreeSet::new();
    for item in &mut select.projection {
        match item {
            SelectItem::UnnamedExpr(expr) => {
                let plain = heading(expr);
                let mut name = plain.clone();
                for number in 1.. {
                    if names.insert(name.clone()) {
                        break;
                    }
                    name = format!("{plain}_{number}");
                }
                let column = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
                if !column || name != plain {
                    let expr = std::mem::replace(expr, Expr::Identifier(Ident::new("")));
                    *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) };
                }
            }
            SelectItem::ExprWithAlias { alias, .. } => drop(names.insert(alias.value.clone())),
            _ => {}
        }
    }
}

/// What DuckDB calls a column of `expr`. Forms that it writes in a way of its own, as CASE, stand as the query has them.
fn heading(expr: &Expr) -> String {
    match expr {
        Expr::CompoundIdentifier(names) => names.last().map_or_else(String::new, |name| name.value.clone()),
        Expr::Nested(of) => heading(of),
        other => inner(other),
    }
}

/// The same inside of another expression, where a column keeps its table's name.
fn inner(expr: &Expr) -> String {
    let not = |negated: bool, text: String| if negated { format!("(NOT {text})") } else { text };
    match expr {
        Expr::Identifier(name) => name.value.clone(),
        Expr::Nested(of) => inner(of),
        Expr::IsNull(of) => format!("({} IS NULL)", inner(of)),
        Expr::IsNotNull(of) => format!("({} IS NOT NULL)", inner(of)),
        Expr::IsDistinctFrom(one, other) => format!("({} IS DISTINCT FROM {})", inner(one), inner(other)),
        Expr::IsNotDistinctFrom(one, other) => format!("({} IS NOT DISTINCT FROM {})", inner(one), inner(other)),
        Expr::Ceil { expr, .. } => format!("ceil({})", inner(expr)),
        Expr::Floor { expr, .. } => format!("floor({})", inner(expr)),
        Expr::Between { expr, negated, low, high } => {
            not(*negated, format!("({} BETWEEN {} AND {})", inner(expr), inner(low), inner(high)))
        }
        Expr::InList { expr, list, negated } => {
            let list = list.iter().map(inner).collect::<Vec<_>>().join(", ");
            not(*negated, format!("({} IN ({list}))", inner(expr)))
        }
        Expr::BinaryOp { left, op, right } => {
            let op = match op {
                BinaryOperator::NotEq => "!=".to_owned(),
                op => op.to_string(),
            };
            let text = inner(left);
            // a AND b AND c is one list
            let joined = matches!(&**left, Expr::BinaryOp { op: same, .. } if same.to_string() == op)
                && ["AND", "OR"].contains(&&*op);
            let left = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).filter(|_| joined);
            format!("({} {op} {})", left.unwrap_or(&text), inner(right))
        }
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } if matches!(**expr, Expr::Value(_)) => {
            format!("-{}", inner(expr))
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => format!("(NOT {})", inner(expr)),
        Expr::UnaryOp { op, expr } => format!("({op}({}))", inner(expr)),
        Expr::Cast { kind, expr, data_type, .. } => {
            let word = if *kind == CastKind::TryCast { "TRY_CAST" } else { "CAST" };
            format!("{word}({} AS {data_type})", inner(expr))
        }
        Expr::Function(function) => called(function),
        other => other.to_string(),
    }
}

fn called(function: &Function) -> String {
    let name = function.name.to_string().to_ascii_lowercase();
    let FunctionArguments::List(list) = &function.args else { return function.to_string() };
    let arg = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => inner(expr),
        other => other.to_string(),
    };
    let mut text = match &list.args[..] {
        [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] if name == "count" => "count_star()".to_owned(),
        args => {
            let distinct =
                if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) { "DISTINCT " } else { "" };
            format!("{name}({distinct}{})", args.iter().map(arg).collect::<Vec<_>>().join(", "))
        }
    };
    if let Some(filter) = &function.filter {
        text += &format!(" FILTER (WHERE {})", inner(filter));
    }
    if let Some(over) = &function.over {
        text += &format!(" OVER {over}");
    }
    text
}
