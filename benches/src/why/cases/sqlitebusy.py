#: what Another process keeps a write transaction of an SQLite database open for 0.6 s; the writer tries again and again.
#: record -a
#: helper {prog} {mode} helper
#: cause object*=app.db by=batch
#: cause object*=app.db errno=EAGAIN
import os
import sqlite3
from shared import *

db = sqlite3.connect("app.db", timeout=20, isolation_level=None)
if ROLE:
    name("batch")
    db.execute("create table if not exists t (x)")
    ready()
    if ON:
        db.execute("begin immediate")
        subject()
        time.sleep(0.65)
        db.execute("commit")
    forever()
name("writer")
spin(0.2)
db.execute("insert into t values (1)")
spin(0.1)
