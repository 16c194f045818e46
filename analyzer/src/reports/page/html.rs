//! HTML in the making. Only constants go in as they are; every other text is made visible and escaped.

use super::text::visible;
use systape_answers::render::xml::entity;

/// Some HTML.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Appends markup.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Appends text.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        escape(&visible(text), &mut self.0);
        self
    }

    /// Appends ` name="value"`, inside of a tag.
    pub(super) fn attr(&mut self, name: &'static str, value: &str) -> &mut Self {
        self.0.push(' ');
        self.0.push_str(name);
        self.0.push_str("=\"");
        escape(&visible(value), &mut self.0);
        self.0.push('"');
        self
    }

    /// Appends an element without attributes that holds text.
    pub(super) fn element(&mut self, name: &'static str, text: &str) -> &mut Self {
        self.raw("<").raw(name).raw(">").text(text).raw("</").raw(name).raw(">")
    }

    /// Appends other HTML.
    pub(super) fn append(&mut self, other: Self) {
        self.0.push_str(&other.0);
    }

    /// The HTML.
    pub(super) fn into_string(self) -> String {
        self.0
    }
}

/// Appends `text`, in which nothing is markup.
pub(super) fn escape(text: &str, to: &mut String) {
    for letter in text.chars() {
        match entity(letter) {
            Some(entity) => to.push_str(entity),
            None => to.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_no_markup() {
        let mut html = Html::default();
        html.raw("<a").attr("title", "\"x\" onclick='y'").raw(">").text("</a><script>\x07").raw("</a>");
        let expected = "<a title=\"&quot;x&quot; onclick=&#39;y&#39;\">&lt;/a&gt;&lt;script&gt;\\x07</a>";
        assert_eq!(html.into_string(), expected);
    }
}
