// What `analyze` asks of a system (WASI preview 1), answered from memory: its words, its files, where its text goes. There is no network,
// no other process and no thread.

import { MOST_WRITTEN } from './files.js';

const [OK, ACCES, BADF, EXIST, INVAL, ISDIR, NOENT, NOSPC, NOSYS, NOTDIR, NOTSUP, PIPE, SPIPE] =
  [0, 2, 8, 20, 28, 31, 44, 51, 52, 54, 58, 64, 70];
const [DEVICE, DIRECTORY, REGULAR] = [2, 3, 4];
const [CREATE, MUST_BE_DIRECTORY, EXCLUSIVE, TRUNCATE] = [1, 2, 4, 8];
const ROOT = 3;
/// Most descriptors.
const MOST_OPEN = 256;
const ALL_RIGHTS = 0x1fffffffn;
/// Names of temporary files; the program removes their names at once.
const TEMPORARY = /^(var\/)?tmp\/[^/]+$/;

/// Ends a program.
export class Exit {
  constructor(status) {
    this.status = status;
  }
}

/// Zeros.
const nothing = { size: 0, read: () => 0, isDevice: true };
/// Numbers nobody can guess.
const random = {
  size: 0,
  isDevice: true,
  read: (_, to) => {
    for (let at = 0; at < to.length; at += 65536) crypto.getRandomValues(to.subarray(at, at + 65536));
    return to.length;
  },
};

/// The imports of a program with the words `args` that sees the files of `shelf`. `out` and `err` take bytes of its text, and return
/// false when they want no more; `read` hears how far a file was read.
export function imports(args, shelf, { out, err, read = () => {} }, memory) {
  const encoder = new TextEncoder();
  const decoder = new TextDecoder('utf-8', { fatal: false });
  const words = args.map(word => encoder.encode(`${word}\0`));
  const open = new Map([[0, { file: nothing, at: 0 }], [ROOT, { isRoot: true }]]);
  const view = () => new DataView(memory().buffer);
  const bytes = (at, length) => new Uint8Array(memory().buffer, at, length);

  /// The pieces of memory of a scattered read or write.
  const pieces = (list, count) => {
    const data = view();
    return Array.from({ length: count }, (_, at) =>
      bytes(data.getUint32(list + at * 8, true), data.getUint32(list + at * 8 + 4, true)));
  };

  const nameOf = (at, length) => {
    const parts = decoder.decode(bytes(at, length)).split('/').filter(part => part !== '' && part !== '.');
    return parts.join('/');
  };

  const find = name => {
    if (name === '' || name === 'tmp' || name === 'var/tmp') return { isRoot: true };
    if (name === 'dev/urandom') return { file: random };
    if (name === 'dev/null') return { file: nothing };
    const file = shelf.files.get(name);
    return file && { file };
  };

  const ids = new Map();
  const idOf = file => {
    if (!ids.has(file)) ids.set(file, ids.size + 2);
    return ids.get(file);
  };

  const stat = (to, { isRoot, file }) => {
    const data = view();
    data.setBigUint64(to, 1n, true);
    data.setBigUint64(to + 8, BigInt(isRoot ? 1 : idOf(file)), true);
    data.setBigUint64(to + 16, 0n, true);
    data.setUint8(to + 16, isRoot ? DIRECTORY : file.isDevice ? DEVICE : REGULAR);
    data.setBigUint64(to + 24, 1n, true);
    data.setBigUint64(to + 32, BigInt(isRoot ? 0 : file.size), true);
    for (const time of [40, 48, 56]) data.setBigUint64(to + time, 0n, true);
    return OK;
  };

  const readInto = (entry, at, list, count) => {
    let done = 0;
    for (const piece of pieces(list, count)) {
      const got = entry.file.read(at + done, piece);
      done += got;
      if (got < piece.length) break;
    }
    read(at + done, entry.file);
    return done;
  };

  /// Bytes of all that is written, with `entry` reaching to `end`: also of open files without a name.
  const bytesWith = (entry, end) => {
    const nameless = new Set([...open.values()].filter(other => other.canWrite && other.isTemporary).map(other => other.file));
    const all = shelf.bytesWritten() + [...nameless].reduce((sum, file) => sum + file.size, 0);
    return all + Math.max(0, end - entry.file.size);
  };

  const writeFrom = (entry, at, list, count) => {
    let done = 0;
    for (const piece of pieces(list, count)) {
      if (bytesWith(entry, at + done + piece.length) > MOST_WRITTEN) return [NOSPC, done];
      entry.file.write(at + done, piece);
      done += piece.length;
    }
    return [OK, done];
  };

  const sized = (list, count, size) => {
    const data = view();
    data.setUint32(count, list.length, true);
    data.setUint32(size, list.reduce((sum, word) => sum + word.length, 0), true);
    return OK;
  };

  const put = (list, pointers, buffer) => {
    const data = view();
    let at = buffer;
    list.forEach((word, number) => {
      data.setUint32(pointers + number * 4, at, true);
      bytes(at, word.length).set(word);
      at += word.length;
    });
    return OK;
  };

  /// Text in UTF-8, no terminal: the same on every machine.
  const environment = ['LC_ALL=C.UTF-8', 'NO_COLOR=1', 'RAYON_NUM_THREADS=1'].map(word => encoder.encode(`${word}\0`));

  const calls = {
    args_sizes_get: (count, size) => sized(words, count, size),
    args_get: (pointers, buffer) => put(words, pointers, buffer),
    environ_sizes_get: (count, size) => sized(environment, count, size),
    environ_get: (pointers, buffer) => put(environment, pointers, buffer),
    clock_res_get: (_, to) => {
      view().setBigUint64(to, 1000000n, true);
      return OK;
    },
    clock_time_get: (clock, _, to) => {
      const now = clock === 0 ? Date.now() : performance.now();
      view().setBigUint64(to, BigInt(Math.round(now * 1e6)), true);
      return OK;
    },
    random_get: (to, length) => {
      random.read(0, bytes(to, length));
      return OK;
    },
    sched_yield: () => OK,
    proc_exit: status => {
      throw new Exit(status);
    },
    fd_prestat_get: (fd, to) => {
      if (fd !== ROOT) return BADF;
      view().setUint32(to, 0, true);
      view().setUint32(to + 4, 1, true);
      return OK;
    },
    fd_prestat_dir_name: (fd, to, length) => {
      if (fd !== ROOT || length < 1) return BADF;
      bytes(to, 1)[0] = '/'.charCodeAt(0);
      return OK;
    },
    fd_fdstat_get: (fd, to) => {
      const entry = open.get(fd);
      if (!entry && fd !== 1 && fd !== 2) return BADF;
      const data = view();
      bytes(to, 24).fill(0);
      const kind = !entry ? REGULAR : entry.isRoot ? DIRECTORY : entry.file.isDevice ? DEVICE : REGULAR;
      data.setUint8(to, kind);
      // a device that can be sought is no terminal
      data.setBigUint64(to + 8, ALL_RIGHTS, true);
      data.setBigUint64(to + 16, ALL_RIGHTS, true);
      return OK;
    },
    fd_fdstat_set_flags: () => OK,
    fd_filestat_get: (fd, to) => {
      if (fd === 1 || fd === 2) return stat(to, { file: nothing });
      const entry = open.get(fd);
      return entry ? stat(to, entry) : BADF;
    },
    fd_filestat_set_size: (fd, size) => {
      const entry = open.get(fd);
      if (!entry?.canWrite) return BADF;
      if (bytesWith(entry, Number(size)) > MOST_WRITTEN) return NOSPC;
      entry.file.resize(Number(size));
      return OK;
    },
    fd_filestat_set_times: () => OK,
    fd_read: (fd, list, count, to) => {
      const entry = open.get(fd);
      if (!entry) return BADF;
      if (entry.isRoot) return ISDIR;
      const done = readInto(entry, entry.at, list, count);
      entry.at += done;
      view().setUint32(to, done, true);
      return OK;
    },
    fd_pread: (fd, list, count, at, to) => {
      const entry = open.get(fd);
      if (!entry) return BADF;
      if (entry.isRoot) return ISDIR;
      view().setUint32(to, readInto(entry, Number(at), list, count), true);
      return OK;
    },
    fd_write: (fd, list, count, to) => {
      if (fd === 1 || fd === 2) {
        let done = 0;
        for (const piece of pieces(list, count)) {
          if (!(fd === 1 ? out : err)(piece)) return PIPE;
          done += piece.length;
        }
        view().setUint32(to, done, true);
        return OK;
      }
      const entry = open.get(fd);
      if (!entry?.canWrite) return BADF;
      const [status, done] = writeFrom(entry, entry.appends ? entry.file.size : entry.at, list, count);
      entry.at += done;
      view().setUint32(to, done, true);
      return status;
    },
    fd_pwrite: (fd, list, count, at, to) => {
      const entry = open.get(fd);
      if (!entry?.canWrite) return BADF;
      const [status, done] = writeFrom(entry, Number(at), list, count);
      view().setUint32(to, done, true);
      return status;
    },
    fd_seek: (fd, offset, whence, to) => {
      const entry = open.get(fd);
      if (!entry) return fd === 1 || fd === 2 ? SPIPE : BADF;
      if (entry.isRoot || entry.file.isDevice) return SPIPE;
      const at = [0, entry.at, entry.file.size][whence] + Number(offset);
      if (!(at >= 0)) return INVAL;
      entry.at = at;
      view().setBigUint64(to, BigInt(at), true);
      return OK;
    },
    fd_tell: (fd, to) => {
      const entry = open.get(fd);
      if (!entry || entry.isRoot) return BADF;
      view().setBigUint64(to, BigInt(entry.at), true);
      return OK;
    },
    fd_sync: () => OK,
    fd_datasync: () => OK,
    fd_advise: () => OK,
    fd_allocate: () => NOTSUP,
    fd_renumber: () => NOTSUP,
    fd_close: fd => (fd !== ROOT && open.delete(fd) || fd === 1 || fd === 2 ? OK : BADF),
    fd_readdir: (fd, to, length, cookie, used) => {
      if (!open.get(fd)?.isRoot) return NOTDIR;
      const names = ['.', '..', ...shelf.files.keys()];
      const data = view();
      let done = 0;
      for (let at = Number(cookie); at < names.length && done < length; at++) {
        const name = encoder.encode(names[at]);
        const entry = new Uint8Array(24 + name.length);
        const head = new DataView(entry.buffer);
        head.setBigUint64(0, BigInt(at + 1), true);
        head.setBigUint64(8, BigInt(at < 2 ? 1 : idOf(shelf.files.get(names[at]))), true);
        head.setUint32(16, name.length, true);
        head.setUint8(20, at < 2 ? DIRECTORY : REGULAR);
        entry.set(name, 24);
        const part = entry.subarray(0, length - done);
        bytes(to + done, part.length).set(part);
        done += part.length;
      }
      data.setUint32(used, done, true);
      return OK;
    },
    path_filestat_get: (fd, _, path, length, to) => {
      if (!open.get(fd)?.isRoot) return NOTDIR;
      const found = find(nameOf(path, length));
      return found ? stat(to, found) : NOENT;
    },
    path_filestat_set_times: () => NOTSUP,
    path_open: (fd, _, path, length, how, rights, _inherited, flags, to) => {
      if (!open.get(fd)?.isRoot) return NOTDIR;
      const name = nameOf(path, length);
      let found = find(name);
      if (found && how & CREATE && how & EXCLUSIVE) return EXIST;
      if (!found) {
        if (!(how & CREATE)) return NOENT;
        // there is one directory, and one for what does not fit into the memory for sums
        if (name.includes('/') && !TEMPORARY.test(name)) return NOENT;
        found = { file: shelf.create(name) };
      }
      if (how & MUST_BE_DIRECTORY && !found.isRoot) return NOTDIR;
      const writes = (rights & 64n) !== 0n;
      if (writes && found.isRoot) return ISDIR;
      // what was dropped stays as it is
      const canWrite = writes && shelf.written.has(name);
      if (writes && !canWrite && !found.file.isDevice) return ACCES;
      if (how & TRUNCATE && canWrite) found.file.resize(0);
      let next = ROOT + 1;
      while (open.has(next)) next++;
      if (next > MOST_OPEN) return NOSPC;
      open.set(next, { ...found, at: 0, canWrite, appends: (flags & 1) !== 0, isTemporary: TEMPORARY.test(name) });
      view().setUint32(to, next, true);
      return OK;
    },
    path_unlink_file: (fd, path, length) => {
      const name = nameOf(path, length);
      if (!shelf.written.has(name)) return shelf.files.has(name) ? ACCES : NOENT;
      shelf.remove(name);
      return OK;
    },
    path_readlink: (fd, path, length) => (find(nameOf(path, length)) ? INVAL : NOENT),
    poll_oneoff: () => NOTSUP,
  };
  // what else the module names is not there
  return new Proxy(calls, { get: (all, name) => all[name] ?? (() => NOSYS) });
}
