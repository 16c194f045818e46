top --by file,dir --metric p99 --top 4 --format csv sample.tape
