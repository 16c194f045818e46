#: what Python imports much of its library and turns a table into text.
#: healthy
import argparse, asyncio, csv, decimal, email, http.client, json, logging, sqlite3, statistics, unittest, xml.dom.minidom

rows = [{"n": i, "text": str(i) * 20} for i in range(30000)]
for _ in range(10):
    rows = json.loads(json.dumps(rows))
