locks --metric max -p 100,202 --top 2 --format csv locks.tape
