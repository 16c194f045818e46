// Files that a report sees: the dropped tapes, and what it writes itself. All of them are in one directory, and in memory, but for a
// tape that is too large for that: it is read from the disk in pages.

/// Most bytes of a file that is read once and kept.
export const KEPT = 256 * 1024 * 1024;
/// Most bytes that reports may write, all files together.
export const MOST_WRITTEN = 256 * 1024 * 1024;
/// Bytes of a page of a larger file, how many are kept, and how many are read when pages are read one behind the other.
const PAGE = 1024 * 1024;
const PAGES = 48;
const AHEAD = 8;

/// Bytes that are all there. `size` of them are in use.
export class MemoryFile {
  constructor(bytes = new Uint8Array(0)) {
    this.bytes = bytes;
    this.size = bytes.length;
  }

  read(at, to) {
    const count = Math.max(0, Math.min(to.length, this.size - at));
    to.set(this.bytes.subarray(at, at + count));
    return count;
  }

  /// Sets the length; what is new is zeros. Capacity grows by doubling.
  resize(size) {
    if (size > this.bytes.length) {
      const grown = new Uint8Array(Math.max(size, 2 * this.bytes.length));
      grown.set(this.bytes.subarray(0, this.size));
      this.bytes = grown;
    }
    if (size < this.size) this.bytes.fill(0, size, this.size);
    this.size = size;
  }

  write(at, from) {
    if (at + from.length > this.size) this.resize(at + from.length);
    this.bytes.set(from, at);
  }

  contents() {
    return this.bytes.subarray(0, this.size);
  }
}

/// A file on the disk, of which pages are in memory. `load(from, to)` returns its bytes.
export class PagedFile {
  constructor(size, load) {
    this.size = size;
    this.load = load;
    this.pages = new Map();
    this.last = -2;
  }

  page(number) {
    let page = this.pages.get(number);
    if (page) {
      // the one used last is at the end
      this.pages.delete(number);
      this.pages.set(number, page);
      return page;
    }
    const count = number === this.last + 1 ? AHEAD : 1;
    const from = number * PAGE;
    const read = this.load(from, Math.min(this.size, from + count * PAGE));
    for (let at = 0; at < count && from + at * PAGE < this.size; at++) {
      this.pages.set(number + at, read.subarray(at * PAGE, (at + 1) * PAGE));
      this.last = number + at;
    }
    while (this.pages.size > PAGES) this.pages.delete(this.pages.keys().next().value);
    page = this.pages.get(number);
    return page;
  }

  read(at, to) {
    let done = 0;
    while (done < to.length && at + done < this.size) {
      const number = Math.floor((at + done) / PAGE);
      const within = at + done - number * PAGE;
      const part = this.page(number).subarray(within, within + to.length - done);
      if (part.length === 0) break;
      to.set(part, done);
      done += part.length;
    }
    return done;
  }
}

/// A directory of files by name. Files that a report made are `written`.
export class Shelf {
  constructor() {
    this.files = new Map();
    this.written = new Set();
  }

  add(name, file) {
    this.files.set(name, file);
  }

  create(name) {
    const file = new MemoryFile();
    this.files.set(name, file);
    this.written.add(name);
    return file;
  }

  remove(name) {
    this.written.delete(name);
    return this.files.delete(name);
  }

  bytesWritten() {
    return [...this.written].reduce((sum, name) => sum + (this.files.get(name)?.size ?? 0), 0);
  }
}
