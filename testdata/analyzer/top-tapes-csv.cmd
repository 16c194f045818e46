top --by tape,errno --metric count --top 5 --format csv sample.tape stats.tape
