across web.tape db.tape --format json
