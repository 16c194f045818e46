"""Asks the questions of `questions.sql` of an export, with Spark.

    spark-submit ask.py DIR [QUESTION...]
    python3 ask.py DIR [QUESTION...]          # the master is SPARK_MASTER, else local[*]

DIR is what `analyze export parquet DIR TAPE...` wrote: a directory, or any place that Spark can read (s3a://...). Prints one JSON
object a row, its first key `question`."""

import datetime
import json
import os
import re
import sys
from decimal import Decimal
from pathlib import Path

from pyspark.sql import SparkSession

HERE = Path(__file__).resolve().parent


def questions(text):
    """The questions of a file by name: texts of SQL without their comments."""
    found = {}
    for part in text.split("-- question: ")[1:]:
        name, _, rest = part.partition("\n")
        found[name.strip()] = "\n".join(line for line in rest.splitlines() if not line.startswith("--")).strip().rstrip(";")
    return found


def session():
    """A session as the questions need it."""
    builder = SparkSession.builder.appName("systape").config("spark.sql.session.timeZone", "UTC")
    # a date and a host are texts, whatever they look like
    builder = builder.config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    if "SPARK_MASTER" in os.environ:
        builder = builder.master(os.environ["SPARK_MASTER"])
    return builder.getOrCreate()


def prepare(spark, place):
    """Makes views of the tables of the export at `place`, and those of its views.sql."""
    path = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(place)
    files = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    for found in files.listStatus(path):
        name = found.getPath().getName()
        if found.isDirectory() and not name.startswith(("_", ".")):
            # tapes of older versions may lack columns
            table = spark.read.option("mergeSchema", "true").option("basePath", f"{place}/{name}").parquet(f"{place}/{name}")
            table.createOrReplaceTempView(name)
    views = "\n".join(row.value for row in spark.read.text(f"{place}/_systape/views.sql").collect())
    views = re.sub(r"^--.*$", "", views, flags=re.MULTILINE)
    for view in filter(str.strip, views.split(";")):
        spark.sql(view.replace("CREATE OR REPLACE VIEW", "CREATE OR REPLACE TEMPORARY VIEW"))


def plain(cell):
    """A cell as JSON has it."""
    if isinstance(cell, Decimal):
        return int(cell) if cell == cell.to_integral_value() else float(cell)
    if isinstance(cell, (datetime.datetime, datetime.date)):
        return cell.isoformat()
    return cell


def main():
    words = sys.argv[1:]
    if not words:
        sys.exit(__doc__)
    place, wanted = words[0], words[1:]
    known = questions((HERE / "questions.sql").read_text())
    unknown = [name for name in wanted if name not in known]
    if unknown:
        sys.exit(f"ask.py: there is no question {unknown[0]}: {', '.join(known)}")
    spark = session()
    spark.sparkContext.setLogLevel("ERROR")
    prepare(spark, place if "://" in place else str(Path(place).resolve()))
    for name in wanted or known:
        # rows come in parts, so that an answer need not fit into memory
        for row in spark.sql(known[name]).toLocalIterator():
            print(json.dumps({"question": name} | {key: plain(cell) for key, cell in row.asDict().items()}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
