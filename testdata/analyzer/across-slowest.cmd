across web.tape db.tape --slowest 5
