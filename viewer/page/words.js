// Command lines as a shell reads them: words, and what is quoted.

/// The words of a command line. A quote that does not end is an error.
function wordsOf(text) {
  const words = [];
  let [word, begun, quote] = ['', false, ''];
  for (let at = 0; at < text.length; at++) {
    const letter = text[at];
    if (quote === "'") {
      if (letter === "'") quote = '';
      else word += letter;
    } else if (letter === '\\' && at + 1 < text.length && (!quote || '"\\$`'.includes(text[at + 1]))) {
      word += text[++at];
      begun = true;
    } else if (quote) {
      if (letter === quote) quote = '';
      else word += letter;
    } else if (letter === "'" || letter === '"') {
      quote = letter;
      begun = true;
    } else if (/\s/.test(letter)) {
      if (begun) words.push(word);
      [word, begun] = ['', false];
    } else {
      word += letter;
      begun = true;
    }
  }
  if (quote) throw new Error(`a ${quote} is not closed`);
  if (begun) words.push(word);
  return words;
}

/// A word that a shell takes as it is.
function quoted(word) {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function lineOf(words) {
  return ['analyze', ...words].map(quoted).join(' ');
}
