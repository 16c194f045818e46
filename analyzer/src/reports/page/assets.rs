//! What the page is made of besides its contents: style, scripts, and the policy that lets no others run.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::html::{Html, escape};
use super::text::visible;

/// uPlot, as its package has it: analyzer/assets/README.md.
const UPLOT: &str = include_str!("../../../assets/uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../../assets/uplot/uPlot.min.css");
const UPLOT_LICENSE: &str = include_str!("../../../assets/uplot/LICENSE");

const STYLE: &str = include_str!("../../../assets/page/style.css");

/// Our scripts, in this order.
const SCRIPTS: [&str; 11] = [
    include_str!("../../../assets/page/base.js"),
    include_str!("../../../assets/page/draw.js"),
    include_str!("../../../assets/page/brush.js"),
    include_str!("../../../assets/page/tables.js"),
    include_str!("../../../assets/page/lines.js"),
    include_str!("../../../assets/page/heat.js"),
    include_str!("../../../assets/page/stacks.js"),
    include_str!("../../../assets/page/flame.js"),
    include_str!("../../../assets/page/tree.js"),
    include_str!("../../../assets/page/calls.js"),
    include_str!("../../../assets/page/main.js"),
];

/// The page: `body` with `title`, and `data` for the scripts.
pub(super) fn page(title: &str, body: Html, data: &str) -> String {
    let license = UPLOT_LICENSE.replace("*/", "* /");
    let style = format!("{UPLOT_STYLE}\n{STYLE}");
    let scripts = format!("/*\nuPlot {license}*/\n{UPLOT}\n(() => {{\n'use strict';\n{}\n}})();\n", SCRIPTS.join("\n"));
    let policy = policy(&style, &scripts);
    let body = body.into_string();
    let mut page = String::with_capacity(body.len() + data.len() + style.len() + scripts.len() + 2048);
    page.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str("<meta http-equiv=\"Content-Security-Policy\" content=\"");
    escape(&policy, &mut page);
    page.push_str("\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    page.push_str("<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"generator\" content=\"systape ");
    page.push_str(env!("CARGO_PKG_VERSION"));
    page.push_str("\">\n<title>");
    escape(&visible(title), &mut page);
    page.push_str("</title>\n<style>");
    page.push_str(&style);
    page.push_str("</style>\n</head>\n<body>\n");
    page.push_str(NAVIGATION);
    page.push_str("<main>\n");
    page.push_str(&body);
    page.push_str("\n<footer>Made by analyze ");
    page.push_str(env!("CARGO_PKG_VERSION"));
    page.push_str(" from a systape recording. The page loads nothing.</footer>\n</main>\n");
    page.push_str("<div id=\"tip\" role=\"status\" hidden></div>\n<script type=\"application/json\" id=\"data\">");
    page.push_str(data);
    page.push_str("</script>\n<script>");
    page.push_str(&scripts);
    page.push_str("</script>\n</body>\n</html>\n");
    page
}

const NAVIGATION: &str = r##"<nav id="bar"><a href="#top">Report</a><a href="#losses">Losses</a><a href="#findings">Findings</a><a href="#kills">Kills</a><a href="#time" class="scripted" hidden>Time line</a><a href="#path" class="scripted" hidden>Path</a><a href="#flames" class="scripted" hidden>Flames</a><a href="#processes" class="scripted" hidden>Processes</a><a href="#calls" class="scripted" hidden>Calls</a><a href="#tables">Tables</a><span id="range" hidden><output id="range-text"></output><button type="button" id="range-all">Show all</button></span><button type="button" id="theme" class="scripted" hidden aria-label="Light or dark">◐</button></nav>
"##;

/// Nothing is loaded; only this style and these scripts are applied; scripts cannot write markup.
fn policy(style: &str, scripts: &str) -> String {
    let sum = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())));
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        sum(scripts),
        sum(style)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_names_what_may_run() {
        // printf 'a' | openssl dgst -sha256 -binary | base64
        let policy = policy("a", "");
        assert!(policy.contains("style-src 'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='"), "{policy}");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='")
        );
    }

    #[test]
    fn no_asset_ends_its_element_or_loads_anything() {
        let scripts: Vec<&str> = SCRIPTS.into_iter().chain([UPLOT]).collect();
        for script in &scripts {
            assert!(!script.to_lowercase().contains("</script") && !script.contains("<!--"));
        }
        for word in ["innerHTML", "insertAdjacent", "document.write", "eval(", "fetch(", "XMLHttpRequest", "import("] {
            assert!(scripts.iter().all(|script| !script.contains(word)), "{word}");
        }
        assert!(![STYLE, UPLOT_STYLE].iter().any(|style| style.contains("</") || style.contains("url(")));
    }

    #[test]
    fn text_stays_text() {
        let page = page("</title><script>x()</script>", Html::default(), "{}");
        assert_eq!(page.matches("<script").count(), 2);
        assert!(page.contains("<title>&lt;/title&gt;&lt;script&gt;x()&lt;/script&gt;</title>"));
    }
}
