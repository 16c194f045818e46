//! Values of a fixed size, some of which may be NULL: the values lie side by side, as whoever takes a column wants them.

use systape_events::values::columns;

/// Values of rows, some of which may be NULL.
#[derive(Clone, Debug, PartialEq)]
pub struct Nullable<T> {
    /// A value for each row; of a row that is NULL the default.
    values: Vec<T>,
    /// Whether each row is NULL; None: no row is.
    nulls: Option<Vec<bool>>,
}

impl<T> Default for Nullable<T> {
    fn default() -> Self {
        Self { values: Vec::new(), nulls: None }
    }
}

impl<T: Copy + Default> Nullable<T> {
    /// Makes `rows` rows that are NULL.
    pub fn all_null(rows: usize) -> Self {
        Self { values: vec![T::default(); rows], nulls: (rows > 0).then(|| vec![true; rows]) }
    }

    /// Makes rows of these values; those at `nulls` are NULL.
    pub(super) fn new(mut values: Vec<T>, nulls: &[usize]) -> Self {
        if nulls.is_empty() {
            return Self { values, nulls: None };
        }
        let mut flags = vec![false; values.len()];
        for at in nulls {
            values[*at] = T::default();
            flags[*at] = true;
        }
        Self { values, nulls: Some(flags) }
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, value: Option<T>) {
        match &mut self.nulls {
            Some(nulls) => nulls.push(value.is_none()),
            None if value.is_none() => {
                let mut nulls = vec![false; self.values.len()];
                nulls.push(true);
                self.nulls = Some(nulls);
            }
            None => {}
        }
        self.values.push(value.unwrap_or_default());
    }

    /// The value of a row; None: it is NULL, or there is no such row.
    #[inline]
    pub fn get(&self, row: usize) -> Option<T> {
        let value = self.values.get(row).copied()?;
        (!self.is_null(row)).then_some(value)
    }

    /// Whether a row is NULL.
    #[inline]
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.get(row).copied().unwrap_or(true))
    }

    /// The values; of a row that is NULL the default.
    pub(super) fn values(&self) -> &[T] {
        &self.values
    }

    /// Whether no row is NULL.
    pub(super) fn is_whole(&self) -> bool {
        self.nulls.is_none()
    }

    /// The values, of a row that is NULL the default; and whether each row is NULL, None: no row is.
    pub fn into_parts(self) -> (Vec<T>, Option<Vec<bool>>) {
        (self.values, self.nulls)
    }

    /// The values, of a row that is NULL `other`.
    pub(super) fn or(mut self, other: T) -> Vec<T> {
        let nulls = self.nulls.unwrap_or_default();
        self.values.iter_mut().zip(nulls).filter(|(_, null)| *null).for_each(|(value, _)| *value = other);
        self.values
    }

    /// What `of` makes of the values that there are.
    pub(super) fn map(&self, of: impl FnOnce(&[T]) -> Vec<T>) -> Self {
        let mut values = of(&self.values);
        if let Some(nulls) = &self.nulls {
            values.iter_mut().zip(nulls).filter(|(_, null)| **null).for_each(|(value, _)| *value = T::default());
        }
        Self { values, nulls: self.nulls.clone() }
    }

    /// The rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<T>> + '_ {
        (0..self.values.len()).map(|row| self.get(row))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Leaves out the rows that are not `kept`.
    pub(super) fn keep(&mut self, kept: &[bool]) {
        retain(&mut self.values, kept);
        self.nulls.iter_mut().for_each(|nulls| retain(nulls, kept));
    }

    /// The `rows` of these.
    pub(super) fn at(&self, rows: &[u32]) -> Self {
        let nulls = self.nulls.as_ref().map(|nulls| columns::in_order(nulls, rows));
        Self { values: columns::in_order(&self.values, rows), nulls }
    }
}

impl<T: Copy + Default> FromIterator<Option<T>> for Nullable<T> {
    fn from_iter<I: IntoIterator<Item = Option<T>>>(rows: I) -> Self {
        let rows = rows.into_iter();
        let mut all = Self { values: Vec::with_capacity(rows.size_hint().0), nulls: None };
        rows.for_each(|value| all.push(value));
        all
    }
}

/// Leaves out the values that are not `kept`.
pub(super) fn retain<T>(values: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    values.retain(|_| kept.next() == Some(&true));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_with_those_that_are_null() {
        let rows = [Some(3_i64), None, Some(0), None];
        let mut all: Nullable<i64> = rows.into_iter().collect();
        assert_eq!(all.iter().collect::<Vec<_>>(), rows);
        assert_eq!((all.get(0), all.get(1), all.get(9), all.len()), (Some(3), None, None, 4));
        assert_eq!(all.at(&[2, 1]).iter().collect::<Vec<_>>(), [Some(0), None]);
        all.keep(&[true, false, true, true]);
        assert_eq!(all.iter().collect::<Vec<_>>(), [Some(3), Some(0), None]);
        assert!(!all.is_whole() && rows[..1].iter().copied().collect::<Nullable<i64>>().is_whole());
        assert_eq!(Nullable::<i64>::all_null(2), [None, None].into_iter().collect());
    }
}
