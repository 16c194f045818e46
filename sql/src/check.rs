//! Which queries are answered: one SELECT (or WITH ... SELECT) of the parts of SQL whose answers were compared with another
//! engine's. Everything else is refused with the reason, so that no answer is wrong without a word.

use std::ops::ControlFlow;

use anyhow::{Result, anyhow, bail};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, DateTimeField, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, GroupByExpr, Ident, ObjectName, Query, Select,
    SelectFlavor, SetExpr, SetOperator, SetQuantifier, Statement, TableFactor, UnaryOperator, Value, ValueWithSpan,
    Visit as _, VisitMut as _, Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::DuckDbDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::exact::NEGATED;
use crate::headings;

/// Most bytes of a query.
const MOST_BYTES: usize = 64 << 10;
/// Most expressions inside each other.
const MOST_DEEP: usize = 256;
/// Most parts of a query.
const MOST_PARTS: usize = 20_000;
/// Most levels that the parser follows.
const MOST_LEVELS: usize = 100;

/// Functions of one row.
const FUNCTIONS: &[&str] = &[
    "abs",
    "ceil",
    "ceiling",
    "coalesce",
    "concat",
    "contains",
    "date_trunc",
    "ends_with",
    "exp",
    "floor",
    "greatest",
    "least",
    "left",
    "length",
    "ln",
    "log10",
    "log2",
    "lower",
    "ltrim",
    "nullif",
    "pow",
    "power",
    "replace",
    "reverse",
    "right",
    "round",
    "rtrim",
    "sqrt",
    "starts_with",
    "strpos",
    "substr",
    "substring",
    "trim",
    "upper",
];

/// Functions of many rows.
const AGGREGATES: &[&str] = &[
    "avg",
    "bool_and",
    "bool_or",
    "count",
    "max",
    "median",
    "min",
    "quantile_cont",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "sum",
    "var_pop",
    "var_samp",
];

/// Functions of a window alone.
const WINDOWS: &[&str] = &[
    "cume_dist",
    "dense_rank",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
];

/// What to do when a query cannot be answered here.
pub(crate) const ELSEWHERE: &str =
    "use 'analyze export parquet DIR TAPE', then duckdb or spark on it (docs/guides/sql.md)";

/// Parses `sql` and checks it.
///
/// # Errors
/// It is no query, or has a part that is not answered.
pub(crate) fn parse(sql: &str) -> Result<Statement> {
    if sql.len() > MOST_BYTES {
        bail!("the query has {} bytes, at most {MOST_BYTES} may be", sql.len());
    }
    let parser = Parser::new(&DuckDbDialect {}).with_recursion_limit(MOST_LEVELS);
    let mut statements = parser
        .try_with_sql(sql)
        .and_then(|mut parser| parser.parse_statements())
        .map_err(|error| anyhow!("{error}"))?;
    let (Some(mut statement), true) = (statements.pop(), statements.is_empty()) else {
        bail!("one query is answered at a time: SELECT or WITH ... SELECT");
    };
    if !matches!(statement, Statement::Query(_)) {
        bail!("only SELECT and WITH are answered");
    }
    let mut check = Check::default();
    if let ControlFlow::Break(why) = statement.visit(&mut check) {
        bail!("{why}");
    }
    let _ = VisitorMutRun.visit(&mut statement);
    Ok(statement)
}

/// Counts and refuses.
#[derive(Default)]
struct Check {
    deep: usize,
    parts: usize,
}

type Go = ControlFlow<String>;

fn refuse<T>(what: impl std::fmt::Display) -> ControlFlow<String, T> {
    ControlFlow::Break(format!("{what} is not answered here: {ELSEWHERE}"))
}

impl Visitor for Check {
    type Break = String;

    fn pre_visit_query(&mut self, query: &Query) -> Go {
        self.part()?;
        if query.with.as_ref().is_some_and(|with| with.recursive) {
            return refuse("WITH RECURSIVE");
        }
        if query.fetch.is_some() || !query.locks.is_empty() || query.for_clause.is_some() || query.settings.is_some() {
            return refuse("a clause behind the query other than ORDER BY, LIMIT and OFFSET");
        }
        if query.format_clause.is_some() || !query.pipe_operators.is_empty() {
            return refuse("FORMAT or |>");
        }
        if let Some(order) = &query.order_by
            && !matches!(order.kind, datafusion::sql::sqlparser::ast::OrderByKind::Expressions(_))
        {
            return refuse("ORDER BY ALL");
        }
        body(&query.body)
    }

    fn pre_visit_select(&mut self, select: &Select) -> Go {
        self.part()?;
        self.select(select)
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> Go {
        self.part()?;
        match factor {
            TableFactor::Table {
                args: None,
                with_hints,
                version: None,
                with_ordinality: false,
                partitions,
                json_path: None,
                sample: None,
                index_hints,
                ..
            } if with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty() => Go::Continue(()),
            TableFactor::Table { args: Some(_), name, .. } => refuse(format!("the table function {name}")),
            TableFactor::Derived { lateral: false, sample: None, .. } | TableFactor::NestedJoin { .. } => {
                Go::Continue(())
            }
            other => refuse(format!("{other} in FROM")),
        }
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> Go {
        if relation.0.len() > 1 {
            return refuse(format!("the table {relation} of a schema"));
        }
        Go::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> Go {
        self.part()?;
        self.deep += 1;
        if self.deep > MOST_DEEP {
            return Go::Break(format!("the query has more than {MOST_DEEP} expressions inside each other"));
        }
        expression(expr)
    }

    fn post_visit_expr(&mut self, _: &Expr) -> Go {
        self.deep -= 1;
        Go::Continue(())
    }
}

impl Check {
    fn part(&mut self) -> Go {
        self.parts += 1;
        if self.parts > MOST_PARTS {
            Go::Break(format!("the query has more than {MOST_PARTS} parts"))
        } else {
            Go::Continue(())
        }
    }

    fn select(&self, select: &Select) -> Go {
        let plain = select.optimizer_hints.is_empty()
            && select.top.is_none()
            && select.exclude.is_none()
            && select.into.is_none()
            && select.lateral_views.is_empty()
            && select.prewhere.is_none()
            && select.connect_by.is_empty()
            && select.cluster_by.is_empty()
            && select.distribute_by.is_empty()
            && select.sort_by.is_empty()
            && select.named_window.is_empty()
            && select.qualify.is_none()
            && select.value_table_mode.is_none()
            && matches!(select.flavor, SelectFlavor::Standard);
        if !plain {
            return refuse("a clause of SELECT other than FROM, WHERE, GROUP BY and HAVING");
        }
        match &select.group_by {
            GroupByExpr::Expressions(_, modifiers) if modifiers.is_empty() => Go::Continue(()),
            GroupByExpr::Expressions(..) => refuse("GROUP BY with a modifier"),
            GroupByExpr::All(_) => refuse("GROUP BY ALL"),
        }
    }
}

fn body(of: &SetExpr) -> Go {
    match of {
        SetExpr::Select(_) | SetExpr::Query(_) => Go::Continue(()),
        SetExpr::SetOperation {
            op: SetOperator::Union | SetOperator::Except | SetOperator::Intersect,
            set_quantifier,
            left,
            right,
        } => {
            match set_quantifier {
                SetQuantifier::All | SetQuantifier::None | SetQuantifier::Distinct => {}
                other => return refuse(format!("{other}")),
            }
            body(left)?;
            body(right)
        }
        other => refuse(format!("{other}")),
    }
}

fn expression(expr: &Expr) -> Go {
    use BinaryOperator as Op;
    match expr {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::InList { .. }
        | Expr::InSubquery { .. }
        | Expr::Between { .. }
        | Expr::Position { .. }
        | Expr::Nested(_)
        | Expr::Case { .. }
        | Expr::Exists { .. }
        | Expr::Subquery(_) => Go::Continue(()),
        Expr::BinaryOp { op, .. } => match op {
            Op::Plus
            | Op::Minus
            | Op::Multiply
            | Op::Divide
            | Op::Modulo
            | Op::StringConcat
            | Op::Gt
            | Op::Lt
            | Op::GtEq
            | Op::LtEq
            | Op::Eq
            | Op::NotEq
            | Op::And
            | Op::Or => Go::Continue(()),
            other => refuse(format!("the operator {other}")),
        },
        Expr::UnaryOp { op: UnaryOperator::Not | UnaryOperator::Minus | UnaryOperator::Plus, .. } => Go::Continue(()),
        Expr::Like { any: false, .. } | Expr::ILike { any: false, .. } => Go::Continue(()),
        Expr::Cast {
            kind: CastKind::Cast | CastKind::DoubleColon | CastKind::TryCast,
            data_type,
            format: None,
            ..
        } => cast(data_type),
        Expr::Extract { field, .. } => match field {
            DateTimeField::Year
            | DateTimeField::Month
            | DateTimeField::Day
            | DateTimeField::Hour
            | DateTimeField::Minute => Go::Continue(()),
            other => refuse(format!("EXTRACT({other} ...)")),
        },
        Expr::Ceil { field, .. } | Expr::Floor { field, .. } => match field {
            datafusion::sql::sqlparser::ast::CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => {
                Go::Continue(())
            }
            _ => refuse("CEIL or FLOOR of a time"),
        },
        Expr::Substring { substring_from, substring_for, .. } => {
            match [substring_from, substring_for].into_iter().flatten().all(|place| is_place(place)) {
                true => Go::Continue(()),
                false => refuse("substr from or for what is no positive constant"),
            }
        }
        Expr::Trim { trim_where: None, trim_characters: None, trim_what: None, .. } => Go::Continue(()),
        Expr::CompoundFieldAccess { .. } => Go::Continue(()),
        Expr::Value(value) => literal(&value.value),
        Expr::TypedString(typed) => match &typed.data_type {
            DataType::Timestamp(..) => Go::Continue(()),
            other => refuse(format!("a constant of type {other}")),
        },
        Expr::Function(function) => called(function),
        other => refuse(format!("the expression {other}")),
    }
}

/// Whether it is a place in a text: 1, 2, ...
fn is_place(expr: &Expr) -> bool {
    let number =
        |value: &Value| matches!(value, Value::Number(text, _) if text.parse::<u32>().is_ok_and(|place| place > 0));
    matches!(expr, Expr::Value(value) if number(&value.value))
}

fn literal(value: &Value) -> Go {
    match value {
        Value::Number(text, false) if text.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte)) => {
            let whole = text.bytes().all(|byte| byte.is_ascii_digit());
            if whole && text.parse::<i64>().is_err() {
                return refuse(format!("the number {text}, which has more than 63 bits,"));
            }
            Go::Continue(())
        }
        Value::SingleQuotedString(_) | Value::Boolean(_) | Value::Null => Go::Continue(()),
        other => refuse(format!("the constant {other}")),
    }
}

fn cast(to: &DataType) -> Go {
    match to {
        DataType::BigInt(_)
        | DataType::Int(_)
        | DataType::Integer(_)
        | DataType::Double(_)
        | DataType::DoublePrecision
        | DataType::Varchar(None)
        | DataType::Text
        | DataType::Boolean => Go::Continue(()),
        other => refuse(format!("a cast to {other}")),
    }
}

fn called(function: &Function) -> Go {
    let name = function.name.to_string().to_ascii_lowercase();
    let windowed = function.over.is_some();
    let known = |list: &[&str]| list.contains(&&*name);
    if !(known(FUNCTIONS) || known(AGGREGATES) || (known(WINDOWS) && windowed)) {
        return refuse(format!("the function {name}"));
    }
    if !matches!(function.parameters, FunctionArguments::None)
        || function.null_treatment.is_some()
        || !function.within_group.is_empty()
    {
        return refuse(format!("a clause of {name}"));
    }
    if (function.filter.is_some() && !known(AGGREGATES)) || (windowed && known(FUNCTIONS)) {
        return refuse(format!("a clause of {name}"));
    }
    if windowed && (function.filter.is_some() || ["median", "quantile_cont"].contains(&&*name)) {
        return refuse(format!("{name} as a window"));
    }
    let FunctionArguments::List(list) = &function.args else { return refuse(format!("an argument of {name}")) };
    for clause in &list.clauses {
        if !matches!(clause, FunctionArgumentClause::OrderBy(order) if order.is_empty()) {
            return refuse(format!("a clause inside {name}"));
        }
    }
    if list.duplicate_treatment.is_some() && !["count", "sum", "min", "max", "avg"].contains(&&*name) {
        return refuse(format!("DISTINCT inside {name}"));
    }
    for arg in &list.args {
        match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(_)) => {}
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) if name == "count" => {}
            _ => return refuse(format!("an argument of {name}")),
        }
    }
    let unit = |arg: &FunctionArg| {
        matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(unit), .. })))
            if ["year", "month", "day", "hour", "minute", "second", "millisecond"].contains(&&*unit.to_ascii_lowercase()))
    };
    if name == "date_trunc" && !list.args.first().is_some_and(unit) {
        return refuse("date_trunc to another unit than year, month, day, hour, minute, second and millisecond");
    }
    // engines differ in what is before the first character
    if ["substr", "substring"].contains(&&*name)
        && !list
            .args
            .iter()
            .skip(1)
            .all(|arg| matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) if is_place(arg)))
    {
        return refuse("substr from or for what is no positive constant");
    }
    if name == "count" && list.args.len() > 1 {
        return refuse("count of several columns");
    }
    Go::Continue(())
}

/// What is said in another way to the engine.
struct VisitorMutRun;

impl VisitorMutRun {
    fn visit(mut self, statement: &mut Statement) -> ControlFlow<()> {
        statement.visit(&mut self)
    }
}

impl VisitorMut for VisitorMutRun {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        headings::name(select);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        // the engine's own wraps at the least number
        if let Expr::UnaryOp { op: UnaryOperator::Minus, expr: of } = expr
            && !matches!(**of, Expr::Value(_))
        {
            let of = std::mem::replace(&mut **of, Expr::Value(Value::Null.into()));
            *expr = Expr::Function(Function {
                name: ObjectName::from(vec![Ident::new(NEGATED)]),
                uses_odbc_syntax: false,
                parameters: FunctionArguments::None,
                args: FunctionArguments::List(FunctionArgumentList {
                    duplicate_treatment: None,
                    args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(of))],
                    clauses: Vec::new(),
                }),
                filter: None,
                null_treatment: None,
                over: None,
                within_group: Vec::new(),
            });
        }
        ControlFlow::Continue(())
    }
}
